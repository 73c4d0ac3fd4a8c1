package main

// exception is what a package may hold all the same.
type exception struct{ in, what string }

const (
	backend  = "what a plugin works on is outside of the API, and no step can do it"
	metrics  = "the APIs of metrics can only be read, and by clients of their own"
	openAPI  = "the type checker of the library asks for the documents by itself; they can only be read"
	handedOn = "a key that waits is looked at live by the tracker; the runner hands the function on"
)

// exceptions are by package and type, with the reason. A function without a type of its
// own is named like the field or the parameter that holds it.
var exceptions = map[exception]string{
	{"pkg/controller/disruption", "func Scale"}:                                                    "a scale is no object of its own, which client.Reader could read for any kind",
	{"pkg/controller/persistentvolumebinder", "func Delete"}:                                       backend,
	{"pkg/controller/persistentvolumebinder", "func Provision"}:                                    backend,
	{"pkg/controller/persistentvolumebinder", "func Recycle"}:                                      backend,
	{"pkg/controller/podautoscaler", "pkg/controller/podautoscaler.Reader"}:                        metrics,
	{"pkg/controller/storageversionmigrator", "pkg/controller/storageversionmigrator.Definitions"}: "definitions are read, and their kind is not one of those of client.Reader",
	{"pkg/controller/validatingadmissionpolicystatus", "k8s.io/client-go/openapi.Client"}:          openAPI,
	{"pkg/controller/validatingadmissionpolicystatus", "k8s.io/client-go/openapi.GroupVersion"}:    openAPI,
	{"pkg/volumes/recycle", "pkg/volumes/recycle.Events"}:                                          "the events of one pod are watched while it runs; client.Reader does not watch",
	{"staging/controllerkit/runner", "staging/controllerkit/consistency.List"}:                     handedOn,
}
