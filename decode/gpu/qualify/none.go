//go:build !cgo || !linux

package qualify

import "context"

// Run fails: this build has no engine.
func Run(context.Context, Options) Result {
	return Result{Steps: []Step{{Name: "open", Verdict: Failed, Reason: "this build has no GPU engine: it needs cgo and Linux"}}}
}
