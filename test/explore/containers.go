package explore

import (
	"maps"
	"slices"
)

// containerFields are those that containers are drawn with, besides name and image.
var containerFields = map[string][]any{
	"args":                     {[]any{"a"}},
	"command":                  {[]any{"a", "b"}},
	"env":                      {[]any{Object{"name": "A", "value": "b"}}, []any{Object{"name": "N", "valueFrom": Object{"fieldRef": Object{"fieldPath": "metadata.name"}}}}},
	"imagePullPolicy":          {"Always", "Never", "IfNotPresent"},
	"lifecycle":                {Object{"preStop": Object{"exec": Object{"command": []any{"a"}}}}},
	"livenessProbe":            {Object{"tcpSocket": Object{"port": 80}}},
	"ports":                    {[]any{Object{"containerPort": 80}}, []any{Object{"name": "http", "containerPort": 8080, "protocol": "TCP"}}},
	"readinessProbe":           {Object{"tcpSocket": Object{"port": 80}}, Object{"httpGet": Object{"path": "/", "port": 8080}, "periodSeconds": 1}},
	"resources":                {Object{"requests": Object{"cpu": "100m"}}, Object{"requests": Object{"memory": "1Gi"}, "limits": Object{"memory": "1024Mi"}}},
	"securityContext":          {Object{"runAsNonRoot": true}, Object{}},
	"startupProbe":             {Object{"exec": Object{"command": []any{"a"}}}},
	"stdin":                    {true, false},
	"terminationMessagePath":   {"/a"},
	"terminationMessagePolicy": {"File", "FallbackToLogsOnError"},
	"tty":                      {true, false},
	"workingDir":               {"/a"},
}

// Container draws a container.
func (d *Draw) Container(name string) Object {
	c := Object{"name": name, "image": One(d, "one", "two", "three")}
	names := slices.Sorted(maps.Keys(containerFields))
	for range d.Int(0, 2) {
		field := One(d, names...)
		c[field] = copyOf(One(d, containerFields[field]...))
	}
	return c
}

// containers are those of a pod; sidecars, if they are to begin before it.
func containers(d *Draw) any {
	out := []any{d.Container("c")}
	if d.Chance(20) {
		out = append(out, d.Container("b"))
	}
	return out
}

func initContainers(d *Draw) any {
	i := d.Container("i")
	delete(i, "lifecycle")
	delete(i, "readinessProbe")
	delete(i, "startupProbe")
	delete(i, "livenessProbe")
	if d.Chance(70) {
		i["restartPolicy"] = "Always"
	}
	return []any{i}
}
