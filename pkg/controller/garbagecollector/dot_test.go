package garbagecollector

import (
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/types"
)

const pictured = `strict digraph full {
  // Node definitions.
  "12345" [
    label="uid=12345\nnamespace=default\nFoo.v1.x.example.com/foo\nvirtual\n"
    group="x.example.com"
    version="v1"
    kind="Foo"
    namespace="default"
    name="foo"
    uid="12345"
    missing="false"
    beingDeleted="false"
    deletingDependents="false"
    virtual="true"
  ];
  "child-2" [
    label="uid=child-2\nnamespace=default\nBox.v1.g/child\nbeingDeleted,deletingDependents\n"
    group="g"
    version="v1"
    kind="Box"
    namespace="default"
    name="child"
    uid="child-2"
    missing="false"
    beingDeleted="true"
    deletingDependents="true"
    virtual="false"
  ];
  "owner-1" [
    label="uid=owner-1\nnamespace=\nBox.v1.g/owner\nmissingFromGraph\n"
    group="g"
    version="v1"
    kind="Box"
    namespace=""
    name="owner"
    uid="owner-1"
    missing="true"
    beingDeleted="false"
    deletingDependents="false"
    virtual="false"
  ];
  // Edge definitions.
  "child-2" -> "12345";
  "child-2" -> "owner-1";
}
`

func TestPicture(t *testing.T) {
	s, g := newServer(), newGraph()
	owner := s.create(boxes, "default", "owner")
	foo := ref(boxes, owner)
	foo.APIVersion, foo.Kind, foo.Name, foo.UID = "x.example.com/v1", "Foo", "foo", "12345"
	child := s.create(boxes, "default", "child", ref(boxes, owner), foo).DeepCopy()
	now, stranger := child.CreationTimestamp, s.create(boxes, "default", "stranger")
	child.DeletionTimestamp, child.Finalizers = &now, []string{"foregroundDeletion"}
	g.upsert(boxes, owner)
	g.upsert(boxes, stranger)
	g.upsert(boxes, child)
	g.remove(boxes, owner.UID, true)
	for name, tc := range map[string]struct {
		of   []types.UID
		all  bool
		want string
	}{
		"what owns and what is owned":         {nil, true, pictured},
		"what has to do with one of them":     {[]types.UID{"12345"}, false, pictured},
		"what is alone has to do with nobody": {[]types.UID{stranger.UID}, false, "strict digraph full {\n}\n"},
		"nothing is known":                    {[]types.UID{"unknown"}, false, "strict digraph full {\n}\n"},
	} {
		var b strings.Builder
		if err := draw(&b, g.picture(tc.of, tc.all)); err != nil {
			t.Fatal(err)
		}
		if b.String() != tc.want {
			t.Errorf("%s: got %s", name, b.String())
		}
	}
}
