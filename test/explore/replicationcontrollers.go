package explore

import "slices"

func init() {
	register(&Family{
		Name:     "replicationcontroller",
		Start:    []string{"replicationcontroller-controller", "garbage-collector-controller"},
		Compared: []string{"replicationcontrollers", "pods"},
		Begin: func(d *Draw, s *Script) {
			if d.Chance(25) {
				s.Add("stranger.yaml", drawStranger(d))
			}
			s.Add("web.yaml", drawController(d, "web"))
			if d.Chance(15) {
				s.Add("more.yaml", drawController(d, "more"))
			}
		},
		Moves: slices.Concat([]Move{
			{5, Change("web.yaml", "replicationcontrollers/web", "spec", "spec.template")},
			{2, Change("web.yaml", "replicationcontrollers/web", "spec.template", "spec.template.metadata")},
			{5, Line("scale replicationcontrollers/web %d", "scale replicationcontrollers/web %d", "scale replicationcontrollers/more %d")},
			{2, Line(`patch replicationcontrollers/web {"spec":{"minReadySeconds":1}}`, `patch replicationcontrollers/web {"spec":{"minReadySeconds":2}}`,
				`patch replicationcontrollers/web {"spec":{"minReadySeconds":30}}`, `patch replicationcontrollers/web {"spec":{"minReadySeconds":null}}`)},
			{1, Line("delete replicationcontrollers/web background", "delete replicationcontrollers/web foreground", "delete replicationcontrollers/web orphan")},
			{2, Line("apply web.yaml")},
			{1, Line(`patch replicationcontrollers/web {"spec":{"selector":{"app":"web","tier":"a"},"template":{"metadata":{"labels":{"tier":"a"}}}}}`,
				"annotate replicationcontrollers/web x.example/note=n", "label pods,app=web tier=a", "delete pods/stranger")},
			{1, Quota},
		}, MadeAgain("replicationcontrollers/web", "web.yaml"), PodMoves("replicationcontrollers/web"), Disturbances("pods", "replicationcontrollers")),
	})
}

func drawController(d *Draw, name string) Object {
	o := Object{"apiVersion": "v1", "kind": "ReplicationController", "metadata": d.Metadata(name), "spec": Object{
		"replicas": d.Int(0, 4), "template": d.Template(Object{"app": "web"})}}
	if d.Chance(70) {
		Set(o, []string{"spec", "selector"}, Object{"app": "web"})
	}
	if d.Chance(40) {
		Set(o, []string{"spec", "minReadySeconds"}, One(d, 1, 2, 3, 30))
	}
	d.Dress(o, 1, []string{"spec"}, "spec.template", "spec.selector")
	d.Dress(o, 1, []string{"spec.template"}, "spec.template.metadata")
	return o
}

// drawStranger is a pod without an owner, that somebody may adopt.
func drawStranger(d *Draw) Object {
	return Object{"apiVersion": "v1", "kind": "Pod", "metadata": Object{"name": "stranger", "labels": Object{"app": One(d, "web", "web", "other")}},
		"spec": Object{"containers": []any{Object{"name": "c", "image": "one"}}}}
}
