package runner

import "context"

// Around is what each reconcile of some loops goes through. It calls sync once, and returns
// what the loop takes for its result. Loops call it side by side.
type Around func(ctx context.Context, of Reconciling, sync func(context.Context) Result) Result

// Reconciling names a reconcile: no two loops of a process have the same Loop.
type Reconciling struct{ Loop, Key string }

type aroundKey struct{}

// WithAround returns a context for Run, whose reconciles go through that function.
func WithAround(ctx context.Context, f Around) context.Context {
	return context.WithValue(ctx, aroundKey{}, f)
}

func around[K comparable](ctx context.Context, o Options[K], key K, sync Sync[K]) Result {
	f, ok := ctx.Value(aroundKey{}).(Around)
	if !ok {
		return sync(ctx, key)
	}
	return f(ctx, Reconciling{o.Name + " " + o.Queue, format(key)}, func(ctx context.Context) Result { return sync(ctx, key) })
}
