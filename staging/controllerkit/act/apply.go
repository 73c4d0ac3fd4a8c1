package act

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Merge patches these fields of an object's metadata, and nothing when another
// object has its name by then. No more than metadata is answered.
func Merge(of client.Object, metadata map[string]any) Patch {
	fields := map[string]any{"uid": of.GetUID()}
	maps.Copy(fields, metadata)
	return Patch{Of: of, Type: types.StrategicMergePatchType, Data: Body(map[string]any{"metadata": fields}), MetadataOnly: true}
}

// Body is the data of a patch. The fields are such as can always be written in JSON.
func Body(fields any) []byte {
	data, err := json.Marshal(fields)
	if err != nil {
		panic(fmt.Sprintf("act: fields of a patch: %v", err))
	}
	return data
}

// apply sends the configuration as a patch: the client's own Apply reads no answer
// in protobuf, and its answer has no type to be recorded by.
func (h *hand) apply(ctx context.Context, s Apply) Result {
	data, err := json.Marshal(s.Configuration)
	if err != nil {
		return Result{Became: Refused, Err: err}
	}
	object, patch := blank(s.Of), client.RawPatch(types.ApplyPatchType, data)
	options := client.PatchOptions{FieldManager: s.Manager}
	if s.Force {
		options.Force = &s.Force
	}
	if s.Subresource == "" {
		err = h.client.Patch(ctx, object, patch, &options)
	} else {
		err = h.client.SubResource(s.Subresource).Patch(ctx, object, patch, &client.SubResourcePatchOptions{PatchOptions: options})
	}
	switch {
	case err == nil:
		return h.wrote(s.Events, object)
	case s.Required:
		return h.failed(s.Events, err)
	}
	return h.unlessGone(ctx, s.Events, s.Of, err)
}

func (h *hand) ask(ctx context.Context, s Ask) Result {
	if err := h.client.Create(ctx, s.Question); err != nil {
		return Result{Became: Refused, Err: err}
	}
	return Result{Became: Done, Object: s.Question}
}
