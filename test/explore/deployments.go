package explore

import "slices"

func init() {
	register(&Family{
		Name:     "deployment",
		Start:    []string{"deployment-controller", "replicaset-controller", "garbage-collector-controller"},
		Compared: []string{"deployments", "replicasets", "pods"},
		Begin: func(d *Draw, s *Script) {
			o := Object{"apiVersion": "apps/v1", "kind": "Deployment", "metadata": d.Metadata("web"), "spec": Object{
				"replicas": d.Int(0, 4), "selector": Object{"matchLabels": Object{"app": "web"}}, "template": PodTemplate(Object{"app": "web"})}}
			d.Dress(o, 3, []string{"spec"}, "spec.template", "spec.selector")
			d.Dress(o, 1, []string{"spec.template"}, "spec.template.metadata")
			s.Add("web.yaml", o)
		},
		Moves: slices.Concat([]Move{
			{6, Change("web.yaml", "deployments/web", "spec", "spec.selector", "spec.template")},
			{2, Change("web.yaml", "deployments/web", "spec.template", "spec.template.metadata")},
			{5, Line(`patch deployments/web {"spec":{"template":{"spec":{"containers":[{"name":"c","image":"two"}]}}}}`,
				`patch deployments/web {"spec":{"template":{"spec":{"containers":[{"name":"c","image":"three"}]}}}}`,
				`patch deployments/web {"spec":{"template":{"spec":{"containers":[{"name":"c","image":"one"}]}}}}`)},
			{5, Line("scale deployments/web %d")},
			{2, Line(`patch deployments/web {"spec":{"paused":true}}`, `patch deployments/web {"spec":{"paused":false}}`)},
			{2, Line("undo deployments/web")},
			{1, Line("delete deployments/web background", "delete deployments/web foreground", "delete deployments/web orphan", "delete replicasets,app=web", "delete replicasets,app=web orphan")},
			{2, Line("apply web.yaml")},
			{1, Line("scale replicasets,app=web %d", "annotate replicasets,app=web deployment.kubernetes.io/desired-replicas=7", "label replicasets,app=web app=other")},
			{1, Line("annotate deployments/web deployment.kubernetes.io/revision=5", "annotate deployments/web x.example/note=n")},
		}, PodMoves("deployments/web"), Disturbances("pods", "replicasets")),
	})
}
