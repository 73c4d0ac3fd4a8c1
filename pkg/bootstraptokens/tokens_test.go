package bootstraptokens

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"
)

var noon = time.Date(2026, 6, 1, 12, 0, 0, 0, time.UTC)

// secret is the token abcdef that signs and never ends, with these data changed:
// pairs of key and value; an empty value leaves the key out.
func secret(pairs ...string) *corev1.Secret {
	data := map[string][]byte{"token-id": []byte("abcdef"), "token-secret": []byte("0123456789abcdef"), "usage-bootstrap-signing": []byte("true")}
	for i := 0; i < len(pairs); i += 2 {
		if pairs[i+1] == "" {
			delete(data, pairs[i])
			continue
		}
		data[pairs[i]] = []byte(pairs[i+1])
	}
	return &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Name: "bootstrap-token-abcdef", Namespace: "kube-system"},
		Type:       "bootstrap.kubernetes.io/token", Data: data,
	}
}

func TestLife(t *testing.T) {
	for name, tc := range map[string]struct {
		expiration string
		over       bool
		left       time.Duration
		unreadable bool
	}{
		"a token without an expiration never ends":    {"", false, 0, false},
		"a token ends at its expiration":              {"2026-06-01T12:00:00Z", true, 0, false},
		"and not a second before":                     {"2026-06-01T12:00:01Z", false, time.Second, false},
		"the zone counts":                             {"2026-06-01T12:00:01+01:00", true, 0, false},
		"fractions of a second count":                 {"2026-06-01T12:00:00.5Z", false, 500 * time.Millisecond, false},
		"the first moment of all is long ago":         {"0001-01-01T00:00:00Z", true, 0, false},
		"an expiration that is a word has passed":     {"soon", true, 0, true},
		"a date without a time has passed":            {"2099-01-01", true, 0, true},
		"a blank expiration has passed":               {" ", true, 0, true},
		"a far expiration is as far as a wait may be": {"9999-01-01T00:00:00Z", false, 1<<63 - 1, false},
	} {
		t.Run(name, func(t *testing.T) {
			life := LifeOf(secret("expiration", tc.expiration))
			if v := strings.TrimSpace(tc.expiration); life.Err != nil && v != "" && strings.Contains(life.Err.Error(), v) {
				t.Errorf("the error shows what the secret holds: %v", life.Err)
			}
			if life.Over(noon) != tc.over || life.Left(noon) != tc.left || errors.Is(life.Err, ErrMalformed) != tc.unreadable {
				t.Errorf("got %+v, over: %v, left: %v", life, life.Over(noon), life.Left(noon))
			}
		})
	}
}

func TestForSigning(t *testing.T) {
	named := func(name string) *corev1.Secret { s := secret(); s.Name = name; return s }
	ends := noon.Add(time.Hour)
	good := Token{ID: "abcdef", Secret: "0123456789abcdef"}
	for name, tc := range map[string]struct {
		secret *corev1.Secret
		want   Token
		err    error
		says   string
	}{
		"a token for signing":                     {secret(), good, nil, ""},
		"a token that has not ended yet":          {secret("expiration", ends.Format(time.RFC3339)), Token{ID: good.ID, Secret: good.Secret, Life: Life{Ends: true, At: ends}}, nil, ""},
		"a short key signs too":                   {secret("token-secret", "X!"), Token{ID: "abcdef", Secret: "X!"}, nil, ""},
		"a token that has ended":                  {secret("expiration", "2026-06-01T12:00:00Z"), Token{}, ErrNotForSigning, "expired"},
		"a token for authentication only":         {secret("usage-bootstrap-signing", ""), Token{}, ErrNotForSigning, "usage-bootstrap-signing"},
		"only the word true counts":               {secret("usage-bootstrap-signing", "True"), Token{}, ErrNotForSigning, "usage-bootstrap-signing"},
		"an expiration that is another value":     {secret("expiration", "0123456789abcdef"), Token{}, ErrMalformed, "expiration"},
		"an ID that is the key":                   {secret("token-id", "0123456789abcdef"), Token{}, ErrMalformed, "token-id"},
		"an expiration that cannot be read":       {secret("expiration", "soon"), Token{}, ErrMalformed, "expiration"},
		"no ID":                                   {secret("token-id", ""), Token{}, ErrMalformed, "token-id"},
		"another ID than the name says":           {secret("token-id", "others"), Token{}, ErrMalformed, "token-id is not that of the name"},
		"no key":                                  {secret("token-secret", ""), Token{}, ErrMalformed, "token-secret"},
		"a name without the prefix":               {named("abcdef"), Token{}, ErrMalformed, "name"},
		"a name whose ID is too long":             {named("bootstrap-token-abcdefg"), Token{}, ErrMalformed, "name"},
		"a secret without any data":               {&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "bootstrap-token-abcdef"}}, Token{}, ErrMalformed, "token-id"},
		"malformed comes before not for signing":  {secret("token-secret", "", "usage-bootstrap-signing", ""), Token{}, ErrMalformed, "token-secret"},
		"expired comes before not for signing":    {secret("expiration", "2001-01-01T00:00:00Z", "usage-bootstrap-signing", ""), Token{}, ErrNotForSigning, "expired"},
		"the key never shows in what is reported": {secret("token-id", "others"), Token{}, ErrMalformed, "not that of the name"},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := ForSigning(tc.secret, noon)
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Error(diff)
			}
			if !errors.Is(err, tc.err) || err != nil && !strings.Contains(err.Error(), tc.says) {
				t.Errorf("got error %v", err)
			}
			if err != nil && strings.Contains(err.Error(), "0123456789abcdef") {
				t.Errorf("the error shows the key: %v", err)
			}
		})
	}
}

func TestIs(t *testing.T) {
	elsewhere, opaque := secret(), secret()
	elsewhere.Namespace, opaque.Type = "default", corev1.SecretTypeOpaque
	if !Is(secret()) || Is(elsewhere) || Is(opaque) {
		t.Error("bootstrap tokens are the secrets of kube-system with their type")
	}
}

func TestOnlyTokenSecretsAreCached(t *testing.T) {
	client := fake.NewClientset()
	factory := Informers(client, 0)
	factory.Core().V1().Secrets().Informer()
	factory.StartWithContext(t.Context())
	factory.WaitForCacheSync(t.Context().Done())
	list, ok := client.Actions()[0].(clienttesting.ListActionImpl)
	if !ok || list.Namespace != "kube-system" || list.ListRestrictions.Fields.String() != "type=bootstrap.kubernetes.io/token" {
		t.Errorf("listed %v", client.Actions()[0])
	}
}
