package scenarios

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/kube-kcm/kube-controller-manager/test/harness"
)

func TestParse(t *testing.T) {
	story, err := Parse("dir/web-grows.txtar", []byte(`# Two pods become three.

flags --node-monitor-period=1s  --v=4 --dir=$HOST/plugins
start replicaset-controller deployment-controller
kubelet off
apply web.yaml
within 5s expect deployments/web .status.conditions[?(@.type == "Available")].status == True
never 3s pods/web-* .status.phase == Failed
never 2s expect-count pods,app=web,tier in (a, b) >= 4
-- web.yaml --
kind: Deployment
-- host/plugins/a --
#!/bin/sh
`))
	if err != nil {
		t.Fatal(err)
	}
	want := &Story{
		Name: "web-grows", Path: "dir/web-grows.txtar",
		Setup: Setup{
			Flags:       []string{"--node-monitor-period=1s", "--v=4", "--dir=$DIR/host/web-grows/plugins"},
			Controllers: []string{"replicaset-controller", "deployment-controller"},
		},
		Files: map[string]string{"web.yaml": "kind: Deployment\n", "host/plugins/a": "#!/bin/sh\n"},
		Steps: []Step{
			{Line: 3, Command: "flags", Rest: "--node-monitor-period=1s  --v=4 --dir=$DIR/host/web-grows/plugins"},
			{Line: 4, Command: "start", Rest: "replicaset-controller deployment-controller"},
			{Line: 5, Command: "kubelet", Rest: "off"},
			{Line: 6, Command: "apply", Rest: "web.yaml"},
			{Line: 7, Command: "expect", Rest: `deployments/web .status.conditions[?(@.type == "Available")].status == True`, Within: 5 * time.Second},
			{Line: 8, Command: "expect", Rest: "pods/web-* .status.phase == Failed", Never: 3 * time.Second},
			{Line: 9, Command: "expect-count", Rest: "pods,app=web,tier in (a, b) >= 4", Never: 2 * time.Second},
		},
	}
	for i := range story.Steps {
		story.Steps[i].Text = ""
	}
	if diff := cmp.Diff(want, story); diff != "" {
		t.Error(diff)
	}
	if got := story.Setup.Args(); !slices.Equal(got, []string{"--controllers=replicaset-controller,deployment-controller", "--node-monitor-period=1s", "--v=4", "--dir=$DIR/host/web-grows/plugins"}) {
		t.Errorf("Args() = %q", got)
	}
}

func TestParseRefusesMalformedStories(t *testing.T) {
	for name, tc := range map[string]struct{ story, want string }{
		"an unknown command":                   {"start a\nexplode now", "s.txtar:2: unknown command \"explode\""},
		"a file that is not there":             {"apply web.yaml", "s.txtar:1: apply web.yaml: there is no such file"},
		"a probe that is not there":            {"refused web.yaml", "s.txtar:1: refused web.yaml: there is no such file"},
		"a file that nobody applies":           {"start a\n-- web.yaml --\nkind: Pod", "s.txtar:2: file \"web.yaml\" is never applied"},
		"two files of one name":                {"apply a\n-- a --\n-- a --\n", "file \"a\" occurs twice"},
		"no command at all":                    {"# nothing", "s.txtar:1: the story has no commands"},
		"a flag without dashes":                {"flags v=3", "s.txtar:1: flags takes --name=value"},
		"a patch that is not JSON":             {"patch pods/a {spec", "s.txtar:1: patch pods/a: not JSON"},
		"a reference without a name":           {"delete pods", "s.txtar:1: \"pods\" is not RES/NAME"},
		"an unknown way of deleting":           {"delete pods/a softly", "s.txtar:1: delete takes foreground"},
		"an operator that does not exist":      {"expect pods/a .status.phase ~ x", "s.txtar:1: \"~\" is none of"},
		"a comparison without a value":         {"expect pods/a .status.phase ==", "s.txtar:1: == needs a value"},
		"a value where none belongs":           {"expect pods/a .status.phase exists yes", "s.txtar:1: exists takes no value"},
		"a JSONPath that is none":              {"expect pods/a {.status[} == x", "s.txtar:1: bad JSONPath"},
		"a pattern that is none":               {"expect pods/a .status.phase =~ (", "s.txtar:1: bad pattern"},
		"a count of what has a name":           {"expect-count pods/a == 1", "s.txtar:1: expect-count takes RES[,selector]"},
		"a count that is no number":            {"expect-count pods == many", "s.txtar:1: expect-count needs a number"},
		"an event of an unknown type":          {"expect-event pods/a Bad Reason x", "s.txtar:1: expect-event takes"},
		"a request of no kind":                 {"expect-request create pods 403", "s.txtar:1: expect-request takes"},
		"a request with a word for a code":     {"expect-request write pods refused", "s.txtar:1: expect-request needs a code"},
		"a wait without a duration":            {"within soon expect-gone pods/a", "s.txtar:1: within needs a duration"},
		"something that cannot be waited for":  {"never 3s expect-more pods/a", "s.txtar:1: unknown command \"expect-more\""},
		"a node in an unknown state":           {"node a drunk", "s.txtar:1: node takes ready|silent"},
		"an outcome that cannot be read":       {"fail pods/a exitcode=x", "s.txtar:1: exitcode=x is no number"},
		"a label without a value":              {"label pods/a app", "s.txtar:1: label takes key=value"},
		"a number of replicas that is a word":  {"scale deployments/a many", "s.txtar:1: scale takes RES/NAME and a number"},
		"a webhook for some other place":       {"webhook delete pods 409 kube-system", "s.txtar:1: webhook takes in=NAMESPACE after the code"},
		"a webhook with too many words":        {"webhook delete pods 409 in=a in=b", "s.txtar:1: webhook takes off, or create, update or delete"},
		"a refusal without a name":             {"expect-refused pods >= 1", "s.txtar:1: \"pods\" is not RES/NAME"},
		"a refusal without a number":           {"expect-refused pods/a >= some", "s.txtar:1: expect-refused needs a number"},
		"a refusal that is compared as text":   {"expect-refused pods/a =~ 1", "s.txtar:1: expect-refused takes RES/NAME OPERATOR NUMBER"},
		"a metric without a number":            {"expect-metric up == many", "s.txtar:1: expect-metric needs a number"},
		"a metric that is compared as text":    {"expect-metric up =~ 1", "s.txtar:1: expect-metric takes NAME"},
		"a question without an answer":         {"expect-why pods/a .verdict", "s.txtar:1: \"\" is none of"},
		"a switch position of another machine": {"kubelet maybe", "s.txtar:1: kubelet takes one of on, off"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := Parse("s.txtar", []byte(tc.story))
			if err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("Parse() = %v, want %q", err, tc.want)
			}
		})
	}
}

func TestParseWebhook(t *testing.T) {
	for line, want := range map[string]harness.Refusal{
		"delete pods,secrets 409":               {Operation: "delete", Resources: []string{"pods", "secrets"}, Code: 409},
		"create secrets 500 in=kube-system":     {Operation: "create", Resources: []string{"secrets"}, Code: 500, Namespace: "kube-system"},
		"update clusterroles/status 422 in=a-b": {Operation: "update", Resources: []string{"clusterroles/status"}, Code: 422, Namespace: "a-b"},
	} {
		got, off, err := parseWebhook(line)
		if diff := cmp.Diff(want, got); diff != "" || off || err != nil {
			t.Errorf("%s: off %t, error %v, refusal (-want +got):\n%s", line, off, err, diff)
		}
	}
	if _, off, err := parseWebhook("off"); !off || err != nil {
		t.Errorf("off is %t, %v", off, err)
	}
}

func TestStoriesThatChangeTheirManagerArePrivate(t *testing.T) {
	for name, tc := range map[string]struct {
		story   string
		private bool
	}{
		"start first":                  {"start a\nrestart\nexpect-gone pods/a", false},
		"objects before the start":     {"delete pods/a\nstart a", true},
		"a second start":               {"start a\nstart b", true},
		"a flag after the beginning":   {"start a\ndelete pods/a\nflags --x=y\nstart", true},
		"a graceful stop":              {"start a\nstop", true},
		"the kubelet before the start": {"kubelet off\nstart a", false},
	} {
		t.Run(name, func(t *testing.T) {
			story, err := Parse("s.txtar", []byte(tc.story))
			if err != nil {
				t.Fatal(err)
			}
			if story.Private != tc.private {
				t.Errorf("Private = %t, want %t", story.Private, tc.private)
			}
		})
	}
}

func TestCompare(t *testing.T) {
	object := map[string]any{
		"spec": map[string]any{"replicas": int64(3), "paused": true, "selector": map[string]any{"app": "web"}},
		"status": map[string]any{"phase": "Running", "cpu": "500m", "items": []any{}, "conditions": []any{
			map[string]any{"type": "Ready", "status": "True"}, map[string]any{"type": "Fresh", "status": "False"},
		}},
		"metadata": map[string]any{"annotations": map[string]any{"example.com/a.b": "c d"}, "gone": nil},
	}
	for line, want := range map[string]bool{
		`.spec.replicas == 3`:                                      true,
		`{.spec.replicas} >= 3`:                                    true,
		`spec.replicas <= 2`:                                       false,
		`.spec.replicas != 3`:                                      false,
		`.spec.paused == true`:                                     true,
		`.spec.selector == {"app": "web"}`:                         true,
		`.status.phase =~ ^Run`:                                    true,
		`.status.phase == "Running"`:                               true,
		`.status.cpu >= 0.4`:                                       true,
		`.status.conditions[?(@.type == "Fresh")].status == False`: true,
		`.status.conditions[*].type == Ready Fresh`:                true,
		`.status.conditions[7].type absent`:                        true,
		`.status.items[*] absent`:                                  true,
		`.status.missing.deeper absent`:                            true,
		`.status.missing exists`:                                   false,
		`.status.missing == 0`:                                     true,
		`.status.missing <= 1`:                                     true,
		`.status.missing == false`:                                 true,
		`.status.missing == Running`:                               false,
		`.metadata.gone absent`:                                    true,
		`.metadata.annotations.example\.com/a\.b == c d`:           true,
		`.metadata.annotations['example\.com/a\.b'] == 'c d'`:      true,
	} {
		t.Run(line, func(t *testing.T) {
			c, err := parseCondition(Step{Command: "expect", Rest: "pods/a " + line})
			if err != nil {
				t.Fatal(err)
			}
			values, err := evaluate(c.path, object)
			if err != nil {
				t.Fatal(err)
			}
			if got := compare(c, values); got != want {
				t.Errorf("compare(%v) = %t, want %t", values, got, want)
			}
		})
	}
}

func TestParentOf(t *testing.T) {
	for path, want := range map[string]string{
		".status.used.pods":                     ".status.used",
		"{.status.replicas}":                    ".status",
		".replicas":                             "",
		`.metadata.annotations.example\.com/a`:  "",
		`.metadata.annotations['a.b']`:          "",
		`.status.conditions[?(@.type=="X")].at`: `.status.conditions[?(@.type=="X")]`,
	} {
		if got := parentOf(path); got != want {
			t.Errorf("parentOf(%s) = %q, want %q", path, got, want)
		}
	}
}

func TestGroupsShareManagersAndPutSlowStoriesFirst(t *testing.T) {
	var stories []*Story
	for _, text := range []string{"start a\nrestart", "start b\nrestart", "slow\nstart a\nrestart", "start a\nstop", "start a\nrestart"} {
		story, err := Parse(fmt.Sprintf("%d.txtar", len(stories)), []byte(text))
		if err != nil {
			t.Fatal(err)
		}
		stories = append(stories, story)
	}
	var got []string
	for _, group := range Groups(stories) {
		var names []string
		for _, story := range group {
			names = append(names, story.Name)
		}
		got = append(got, strings.Join(names, " "))
	}
	if want := []string{"2", "0 4", "1", "3"}; !slices.Equal(got, want) {
		t.Errorf("Groups() = %q, want %q", got, want)
	}
}

func TestStoriesWithTheSameAPIServerAreOneGroup(t *testing.T) {
	var stories []*Story
	for _, text := range []string{"start a\nrestart", "apiserver --x=1\nstart a\nstop", "apiserver --x=2\nstart a\nrestart", "apiserver --x=1\nslow\nstart b\nrestart"} {
		story, err := Parse(fmt.Sprintf("%d.txtar", len(stories)), []byte(text))
		if err != nil {
			t.Fatal(err)
		}
		stories = append(stories, story)
	}
	var got []string
	for _, group := range Groups(stories) {
		var names []string
		for _, story := range group {
			names = append(names, story.Name)
		}
		got = append(got, strings.Join(names, " "))
	}
	if want := []string{"3 1", "2", "0"}; !slices.Equal(got, want) {
		t.Errorf("Groups() = %q, want %q", got, want)
	}
	if _, err := Parse("late.txtar", []byte("start a\napiserver --x=1\nrestart")); err == nil {
		t.Error("an apiserver line after other commands is taken")
	}
}
