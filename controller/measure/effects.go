package measure

import (
	"fmt"
	"slices"
	"strings"

	"ordeal/agent/wire"
	"ordeal/controller/result"
	"ordeal/metrics"
)

// States of the oracle that reads the target's state around the recovery pass.
// Only ok licenses a count of effects.
const (
	oracleAbsent       = "absent"       // not asked for
	oracleUnattributed = "unattributed" // no operation id in the arguments
	oracleFailed       = "failed"       // a read did not succeed
	oracleStale        = "stale"        // ids of this seed were there before
	oracleOK           = "ok"
)

// effects counts what the recovery pass did to the target's state, operation by
// operation: in a sum, a duplicate and a lost write would cancel.
func (s *sheet) effects(in *Input, b *metrics.Behavior) {
	read := func(stage string) *wire.OracleResult {
		if st := in.Summary.Stage(stage); st != nil {
			return st.Oracle
		}
		return nil
	}
	stale, before, after := read("oracle-stale"), read("oracle-before"), read("oracle-after")
	status := oracleStatus(in, stale, before, after)
	n := b.Operations
	s.fact("effect_oracle_status", status, n)
	complete := int64(len(b.Kept)) == b.Disrupted
	s.count("duplicate_opportunities", opportunities(b), b.Disrupted)
	if !complete {
		s.caveat(opportunitiesCut(len(b.Kept), b.Disrupted))
	}
	s.missing("count", n, "duplicate_mutations", "lost_effects", "effects_without_acknowledged_delivery", "unattributed_effects", "observed_effects")
	if c, withheld := oracleCaveat(status); withheld {
		if before != nil && after != nil && status == oracleUnattributed {
			s.count("observed_effects", after.Entries-before.Entries, n)
		}
		s.caveat(c)
		return
	}
	s.counted(in, b, before, after)
}

func oracleStatus(in *Input, stale, before, after *wire.OracleResult) string {
	present := func(r *wire.OracleResult) bool { return r != nil && sum(r.Effects) > 0 }
	good := func(r *wire.OracleResult) bool { return r != nil && r.Status == "ok" }
	switch {
	case in.Spec.VerifyTool == "":
		return oracleAbsent
	case !good(before), !good(after), stale != nil && !good(stale):
		return oracleFailed
	case !strings.Contains(string(in.Spec.ToolArgs), "{op_id}"):
		return oracleUnattributed
	case present(stale), present(before):
		return oracleStale
	}
	return oracleOK
}

func oracleCaveat(status string) (c metrics.Caveat, withheld bool) {
	switch status {
	case oracleAbsent:
		return oracleIsAbsent(), true
	case oracleUnattributed:
		return oracleIsUnattributed(), true
	case oracleFailed:
		return oracleHasFailed(), true
	case oracleStale:
		return oracleIsStale(), true
	}
	return c, false
}

// counted records the effects of a window both of whose reads succeeded and
// before which no id of this scan was there.
func (s *sheet) counted(in *Input, b *metrics.Behavior, before, after *wire.OracleResult) {
	n := b.Operations
	var duplicates, lost, quiet, applied int64
	failed, acked := endings(b)
	var twice []uint64
	for op, count := range after.Effects {
		if count <= 0 {
			continue
		}
		if duplicates += count - 1; count > 1 {
			twice = append(twice, op)
		}
		if !failed[op] {
			applied++
		}
		if ack, disrupted := acked[op]; disrupted && !ack {
			quiet++
		}
	}
	s.count("duplicate_mutations", duplicates, n)
	lost = max(0, b.Succeeded-applied)
	if int64(len(failed)) == n-b.Succeeded {
		s.count("lost_effects", lost, b.Succeeded)
	}
	if int64(len(b.Kept)) == b.Disrupted {
		s.count("effects_without_acknowledged_delivery", quiet, n)
	}
	foreign := max(0, after.Entries-sum(after.Effects)-before.Entries)
	s.count("unattributed_effects", foreign, after.Entries)
	s.caveat(windowScope())
	if opportunities(b) == 0 {
		s.caveat(noOpportunity())
	}
	if foreign > 0 {
		s.caveat(foreignWrites(foreign))
	}
	s.effectFindings(in, duplicates, lost, twice)
}

func (s *sheet) effectFindings(in *Input, duplicates, lost int64, twice []uint64) {
	if duplicates > 0 {
		slices.Sort(twice)
		s.finding("duplicate_mutations", result.Critical, fmt.Sprintf(
			"%s applied more than once: a retry repeated work that was already done. The tool needs an idempotency key.",
			plural(duplicates, "effect was", "effects were")), fmt.Sprintf("tool %s, operations %v", in.Spec.Tool, twice[:min(len(twice), shownFailures)]))
	}
	if lost > 0 && s.has("lost_effects") {
		s.finding("lost_effects", result.Critical, fmt.Sprintf(
			"%s acknowledged with success and left no trace in the target's state.", plural(lost, "operation was", "operations were")), "")
	}
}

// opportunities counts operations that were sent again after the target had
// acknowledged one attempt: the chances to do something twice.
func opportunities(b *metrics.Behavior) int64 {
	var n int64
	for i := range b.Kept {
		calls := b.Kept[i].Invocations
		if len(calls) > 1 && slices.ContainsFunc(calls[:len(calls)-1], func(c metrics.Invocation) bool { return c.Executed == metrics.Yes }) {
			n++
		}
	}
	return n
}

// endings tells of the kept operations which failed for good, and of which the
// target acknowledged an attempt. Operations that are not kept were not
// disrupted: their one attempt succeeded.
func endings(b *metrics.Behavior) (failed, acked map[uint64]bool) {
	failed, acked = map[uint64]bool{}, map[uint64]bool{}
	for i := range b.Kept {
		t := &b.Kept[i]
		if !t.Succeeded() {
			failed[t.Op] = true
		}
		acked[t.Op] = slices.ContainsFunc(t.Invocations, func(c metrics.Invocation) bool { return c.Executed == metrics.Yes })
	}
	return failed, acked
}
