package bootstrapsigner

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kube-kcm/kube-controller-manager/staging/controllerkit/act"
)

const (
	content = "a cluster"
	// signature is what HMAC-SHA256 with the key of token good00 makes of content.
	signature = "eyJhbGciOiJIUzI1NiIsImtpZCI6Imdvb2QwMCJ9..5mIGKV7k50x9YQqB33Qx379j3jcjp3Qsv6u078KZuTk"
)

var noon = time.Date(2026, 6, 1, 12, 0, 0, 0, time.UTC)

// info is the config map with these data, given as pairs.
func info(pairs ...string) *corev1.ConfigMap {
	cm := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "cluster-info", Namespace: "kube-public", ResourceVersion: "7"}}
	for i := 0; i < len(pairs); i += 2 {
		if cm.Data == nil {
			cm.Data = map[string]string{}
		}
		cm.Data[pairs[i]] = pairs[i+1]
	}
	return cm
}

func token(id string, pairs ...string) *corev1.Secret {
	s := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Name: "bootstrap-token-" + id, Namespace: "kube-system"},
		Type:       "bootstrap.kubernetes.io/token",
		Data:       map[string][]byte{"token-id": []byte(id), "token-secret": []byte("0123456789abcdef"), "usage-bootstrap-signing": []byte("true")},
	}
	for i := 0; i < len(pairs); i += 2 {
		s.Data[pairs[i]] = []byte(pairs[i+1])
	}
	return s
}

func ending(id string, in time.Duration) *corev1.Secret {
	return token(id, "expiration", noon.Add(in).Format(time.RFC3339))
}

// updated is the config map that a plan puts, nil if none.
func updated(p act.Plan) *corev1.ConfigMap {
	if len(p.Stages) == 0 {
		return nil
	}
	return p.Stages[0].Steps[0].(act.Update).Object.(*corev1.ConfigMap)
}

func TestPlan(t *testing.T) {
	for name, tc := range map[string]struct {
		info    *corev1.ConfigMap
		secrets []*corev1.Secret
		want    map[string]string // nil for no write
		signed  []string
		again   time.Duration
	}{
		"no data":                             {info(), []*corev1.Secret{token("good00")}, nil, nil, 0},
		"no kubeconfig: old signatures stay":  {info("jws-kubeconfig-old000", "x"), nil, nil, nil, 0},
		"no token":                            {info("kubeconfig", content), nil, nil, nil, 0},
		"a token signs":                       {info("kubeconfig", content), []*corev1.Secret{token("good00")}, map[string]string{"kubeconfig": content, "jws-kubeconfig-good00": signature}, []string{"good00"}, 0},
		"a signature that is right stays":     {info("kubeconfig", content, "jws-kubeconfig-good00", signature), []*corev1.Secret{token("good00")}, nil, []string{"good00"}, 0},
		"a signature of another text is made": {info("kubeconfig", content, "jws-kubeconfig-good00", "forged"), []*corev1.Secret{token("good00")}, map[string]string{"kubeconfig": content, "jws-kubeconfig-good00": signature}, []string{"good00"}, 0},
		"the signature of a token that is gone goes, other keys stay": {
			info("kubeconfig", content, "jws-kubeconfig-old000", "x", "jws-kubeconfig-", "y", "other", "z"), nil,
			map[string]string{"kubeconfig": content, "other": "z"}, nil, 0},
		"the signature of an expired token goes": {
			info("kubeconfig", content, "jws-kubeconfig-good00", signature), []*corev1.Secret{ending("good00", 0)},
			map[string]string{"kubeconfig": content}, nil, 0},
		"the signature of a token that became malformed goes": {
			info("kubeconfig", content, "jws-kubeconfig-good00", signature), []*corev1.Secret{token("good00", "expiration", "soon")},
			map[string]string{"kubeconfig": content}, nil, 0},
		"a token that must not sign is no reason to write": {
			info("kubeconfig", content), []*corev1.Secret{token("good00", "usage-bootstrap-signing", "yes")}, nil, nil, 0},
		"the token that ends first says when to look again": {
			info("kubeconfig", content, "jws-kubeconfig-good00", signature), []*corev1.Secret{ending("good00", time.Hour), ending("past00", -time.Hour)},
			nil, []string{"good00"}, time.Hour},
	} {
		t.Run(name, func(t *testing.T) {
			do := plan(observed{tc.info, tc.secrets}, noon)
			var got map[string]string
			if update := updated(do); update != nil {
				got = update.Data
				if update.ResourceVersion != "7" {
					t.Error("the update does not name the version that was judged")
				}
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Error(diff)
			}
			if tc.info.Data["kubeconfig"] == "" {
				return
			}
			if want := fmt.Sprintf("%d tokens sign", len(tc.signed)); !strings.HasPrefix(do.Why, want) || do.RequeueAfter != tc.again {
				t.Error(do.Why, do.RequeueAfter)
			}
			for _, id := range tc.signed {
				if sign(content, tc.secrets, noon).data["jws-kubeconfig-"+id] == "" {
					t.Errorf("token %s does not sign", id)
				}
			}
		})
	}
}

func TestTheSoonestEndCounts(t *testing.T) {
	secrets := []*corev1.Secret{ending("aaaaaa", time.Hour), ending("bbbbbb", time.Minute), token("cccccc"), ending("dddddd", 2*time.Hour)}
	if do := plan(observed{info("kubeconfig", content), secrets}, noon); do.RequeueAfter != time.Minute || !strings.HasPrefix(do.Why, "4 tokens sign: ") {
		t.Errorf("got %+v", do)
	}
}

func TestWhatIsIgnoredIsToldWithoutKeys(t *testing.T) {
	do := plan(observed{info("kubeconfig", content), []*corev1.Secret{token("others", "token-id", "wrong0"), ending("past00", -time.Hour)}}, noon)
	want := "0 tokens sign, 2 do not (bootstrap-token-others: malformed bootstrap token: token-id is not that of the name; " +
		"bootstrap-token-past00: not for signing: expired): nothing differs"
	if diff := cmp.Diff(want, do.Why); diff != "" {
		t.Error(diff)
	}
}

func TestAPlanLeavesTheCacheAlone(t *testing.T) {
	cached := info("kubeconfig", content, "jws-kubeconfig-old000", "x")
	before := cached.DeepCopy()
	if do := plan(observed{cached, []*corev1.Secret{token("good00")}}, noon); updated(do) == nil {
		t.Fatal("nothing to write")
	}
	if diff := cmp.Diff(before, cached); diff != "" {
		t.Error(diff)
	}
}
