package plan

import (
	"fmt"
	"sort"
	"time"

	"ordeal/agent/wire"
)

// Share divides a level among k agents: workers as evenly as they go, and to
// each the operations of its workers' share and an equal part of the waiting
// budget. The parts sum to the whole.
func Share(u wire.Unit, k int) []wire.Unit {
	k = max(1, min(k, u.Load.Workers))
	workers := make([]int, k)
	for i := range workers {
		workers[i] = u.Load.Workers*(i+1)/k - u.Load.Workers*i/k
	}
	return shareBy(u, workers)
}

// ShareAmong divides a level among agents of the given capacities, 0 for one
// that does not say: as evenly as they go, and to none more callers than it can
// hold.
//
// An arrival rate is divided by arrivals: of k agents each makes every k-th. The
// callers of a profile are divided in the same way, so that all agents go up and
// down together; where one has no room for its callers, they are divided by blocks,
// and an agent begins where the one before it is at its peak.
func ShareAmong(u wire.Unit, capacities []int) ([]wire.Unit, error) {
	if u.Load.MilliRate > 0 {
		return arrivals(u, max(1, len(capacities))), nil
	}
	k := max(1, min(len(capacities), u.Load.Workers))
	parts := Share(u, k)
	if len(u.Load.Profile) > 0 {
		parts = strides(u, k)
	}
	left := 0 // callers that found no room yet
	for i := range parts {
		if c := capacities[i]; c > 0 && parts[i].Load.Workers > c {
			left += parts[i].Load.Workers - c
		}
	}
	if left == 0 {
		return parts, nil
	}
	workers, err := fill(u.Load.Workers, capacities)
	if err != nil {
		return nil, err
	}
	return shareBy(u, workers), nil
}

// strides divides the callers of a level among k agents: each has every k-th.
func strides(u wire.Unit, k int) []wire.Unit {
	parts := make([]wire.Unit, k)
	for i := range parts {
		part, load := u, *u.Load
		load.Part, load.Parts = i, k
		load.Workers = (u.Load.Workers - i + k - 1) / k
		load.BackoffBudget = u.Load.BackoffBudget * time.Duration(load.Workers) / time.Duration(u.Load.Workers)
		part.Load = &load
		parts[i] = part
	}
	return parts
}

// arrivals divides one schedule of arrivals among k agents.
func arrivals(u wire.Unit, k int) []wire.Unit {
	parts := make([]wire.Unit, k)
	for i := range parts {
		part, load := u, *u.Load
		load.Part, load.Parts = i, k
		load.MaxInFlight = max(1, u.Load.MaxInFlight/k)
		load.Level = max(1, (u.Load.Level+k-1)/k)
		load.BackoffBudget = u.Load.BackoffBudget / time.Duration(k)
		part.Load = &load
		parts[i] = part
	}
	return parts
}

// fill pours callers into agents until all stand at one level, or are full: the
// highest level that the callers reach everywhere, and one more for the first
// agents with room as long as callers are left.
func fill(callers int, capacities []int) ([]int, error) {
	workers := make([]int, len(capacities))
	pour := func(level int) (sum int) {
		for i, c := range capacities {
			workers[i] = level
			if c > 0 {
				workers[i] = min(level, c)
			}
			sum += workers[i]
		}
		return sum
	}
	if all := pour(callers); all < callers {
		return nil, fmt.Errorf("%d callers do not fit the %d agents, which hold %d: add agents, or raise their --capacity", callers, len(capacities), all)
	}
	level := sort.Search(callers, func(l int) bool { return pour(l+1) > callers })
	left := callers - pour(level)
	for i, c := range capacities {
		if left > 0 && (c <= 0 || workers[i] < c) {
			workers[i]++
			left--
		}
	}
	return workers, nil
}

// shareBy divides a level by the number of callers of each part.
func shareBy(u wire.Unit, workers []int) []wire.Unit {
	var parts []wire.Unit
	first, all := 0, u.Load.Workers
	for _, w := range workers {
		if w > 0 {
			parts = append(parts, part(u, first, first+w, all))
		}
		first += w
	}
	return parts
}

// part is the share of the callers [first, end) of a level of all.
func part(u wire.Unit, first, end, all int) wire.Unit {
	p, load := u, *u.Load
	n := u.Ops.Len()
	load.FirstWorker, load.Workers = u.Load.FirstWorker+first, end-first
	p.Ops = wire.Range{From: u.Ops.From + n*uint64(first)/uint64(all), To: u.Ops.From + n*uint64(end)/uint64(all)}
	load.BackoffBudget = u.Load.BackoffBudget * time.Duration(end-first) / time.Duration(all)
	p.Load = &load
	return p
}
