package measure

import (
	"ordeal/agent/wire"
	"ordeal/controller/merge"
	"ordeal/controller/plan"
	"ordeal/controller/result"
	"ordeal/controller/spec"
	"ordeal/metrics"
	"ordeal/metrics/price"
)

// Input is everything a measurement is made from. Spec, Survey and Summary are
// required.
type Input struct {
	Spec    *spec.Spec
	Survey  *wire.Survey
	Summary *merge.Summary
	Prices  []*price.Table // the first that knows the model applies
	// Plan is what was to be run; without it the recovery of an ideal caller
	// stays unknown.
	Plan []plan.Stage
	// Preflight is the one call made before the scan; nil when none was.
	Preflight *wire.Preflight
}

// Probes measures every probe the spec selects, in the order they run. The
// caveats are those of all probes; the ids in a metric point into them.
func Probes(in Input) ([]result.Probe, []metrics.Caveat) {
	var probes []result.Probe
	caveats := []metrics.Caveat{}
	for _, p := range []struct {
		name    string
		measure func(*Input, *sheet)
	}{
		{"latency", latency},
		{"cost", cost},
		{"concurrency", concurrency},
		{"contract", contract},
		{"fault", fault},
		{"behavior", behavior},
	} {
		if !in.Spec.Selected(p.name) {
			continue
		}
		s := newSheet(p.name)
		p.measure(&in, s)
		s.protocol(&in)
		probes = append(probes, s.finish())
		caveats = append(caveats, s.caveats...)
	}
	return probes, caveats
}

// payloadRejected reports that the target answered the preflight call and
// refused its arguments: what fails afterwards fails for our payload.
func (in *Input) payloadRejected() bool {
	p := in.Preflight
	if p == nil || !p.Delivered {
		return false
	}
	switch p.Outcome {
	case metrics.ToolError, metrics.ProtocolError:
		return true
	}
	return false
}

// userArgs reports that the arguments are the user's own.
func (in *Input) userArgs() bool { return len(in.Spec.ToolArgs) > 0 }
