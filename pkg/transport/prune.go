package transport

import (
	"bytes"
	"slices"

	"google.golang.org/protobuf/encoding/protowire"
)

// magic comes before every object in protobuf form.
var magic = []byte("k8s\x00")

// Field numbers of the messages around an object.
const (
	eventObject     = 2 // WatchEvent.object
	extensionRaw    = 1 // RawExtension.raw
	unknownType     = 1 // Unknown.typeMeta
	unknownRaw      = 2 // Unknown.raw
	unknownEncoding = 3 // Unknown.contentEncoding
	typeMetaVersion = 1 // TypeMeta.apiVersion
	typeMetaKind    = 2 // TypeMeta.kind
)

// Event appends the watch event to dst without the fields of its object that no
// cache keeps. One that is not understood is appended as it is.
func Event(dst, event []byte) []byte {
	start := len(dst)
	dst, ok := descend(dst, event, eventObject, func(dst, extension []byte) ([]byte, bool) {
		return descend(dst, extension, extensionRaw, envelope)
	})
	if !ok {
		return append(dst[:start], event...)
	}
	return dst
}

// envelope shortens an object with the magic bytes and the Unknown around it, by
// the rule of its kind.
func envelope(dst, data []byte) ([]byte, bool) {
	if !bytes.HasPrefix(data, magic) {
		return dst, false
	}
	unknown := data[len(magic):]
	if _, encoded := find(unknown, unknownEncoding); encoded {
		return dst, false
	}
	typeMeta, _ := find(unknown, unknownType)
	version, _ := find(typeMeta, typeMetaVersion)
	kind, _ := find(typeMeta, typeMetaKind)
	return descend(append(dst, magic...), unknown, unknownRaw, ruleFor(version, kind).apply)
}

// descend copies a message and lets inner shorten each field of one number.
func descend(dst, message []byte, number protowire.Number, inner func(dst, value []byte) ([]byte, bool)) ([]byte, bool) {
	return each(dst, message, func(dst []byte, n protowire.Number, field, value []byte) ([]byte, bool) {
		if n != number || value == nil {
			return append(dst, field...), true
		}
		return nested(dst, n, value, inner)
	})
}

// apply appends what the rule leaves of the message.
func (r *rule) apply(dst, message []byte) ([]byte, bool) {
	return each(dst, message, func(dst []byte, n protowire.Number, field, value []byte) ([]byte, bool) {
		switch into := r.into[n]; {
		case r.drop.has(n) || r.keep != 0 && !r.keep.has(n):
			return dst, true
		case into == nil || value == nil:
			return append(dst, field...), true
		default:
			return nested(dst, n, value, into.apply)
		}
	})
}

// each calls visit with every field, and with the value of those that have a length.
func each(dst, message []byte, visit func(dst []byte, n protowire.Number, field, value []byte) ([]byte, bool)) ([]byte, bool) {
	for len(message) > 0 {
		n, kind, tag := protowire.ConsumeTag(message)
		if tag < 0 {
			return dst, false
		}
		size := protowire.ConsumeFieldValue(n, kind, message[tag:])
		if size < 0 {
			return dst, false
		}
		var value []byte
		if kind == protowire.BytesType {
			value, _ = protowire.ConsumeBytes(message[tag:])
		}
		var ok bool
		if dst, ok = visit(dst, n, message[:tag+size], value); !ok {
			return dst, false
		}
		message = message[tag+size:]
	}
	return dst, true
}

// nested appends the field with what inner makes of its value. The length comes
// first and is known last, so room is left for it and closed afterwards.
func nested(dst []byte, n protowire.Number, value []byte, inner func(dst, value []byte) ([]byte, bool)) ([]byte, bool) {
	dst = protowire.AppendTag(dst, n, protowire.BytesType)
	room := len(dst)
	width := protowire.SizeVarint(uint64(len(value)))
	dst = append(dst, make([]byte, width)...)
	dst, ok := inner(dst, value)
	if !ok {
		return dst, false
	}
	size := uint64(len(dst) - room - width)
	less := width - protowire.SizeVarint(size)
	protowire.AppendVarint(dst[:room], size)
	return slices.Delete(dst, room+width-less, room+width), true
}

// find is the value of the last field of that number which has a length.
func find(message []byte, number protowire.Number) (found []byte, ok bool) {
	each(nil, message, func(dst []byte, n protowire.Number, _, value []byte) ([]byte, bool) {
		if n == number && value != nil {
			found, ok = value, len(value) > 0
		}
		return dst, true
	})
	return found, ok
}
