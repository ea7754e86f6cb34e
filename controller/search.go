package controller

import (
	"fmt"
	"math"

	"ordeal/controller/plan"
	"ordeal/controller/result"
	"ordeal/controller/spec"
)

// search is the state of the search for the knee. It is arithmetic: which level
// comes next hangs on the levels before, so a resumed run goes the same way.
//
//	grow      double the rate until one does not meet the SLO
//	narrow    halve what lies between the highest that did and the lowest that did not
//	confirm   longer runs at the highest that did; one that fails makes it the
//	          lowest that did not, and the search narrows again
type search struct {
	asked  spec.Knee
	levels int
	length plan.Level // Duration of a level
	knee   result.Knee
	lo, hi float64   // 0: none yet
	met    []float64 // rates that met the SLO, ascending
	done   bool

	retries int // of the level at hand
}

// searchLevels bounds a search that chance keeps alive.
const searchLevels = 80

// levelRetries is how often a level is sent again when our own side was its limit.
const levelRetries = 3

// confirmLonger is how much longer a confirmation is than a level: what a level
// has no time to show, such as a bucket of tokens that runs dry, it has.
const confirmLonger = 2

func newSearch(s *spec.Spec) *search {
	return &search{asked: *s.Load.Knee, length: plan.Level{Duration: s.Load.Duration}}
}

// next is the level to try; more is false when the search is over.
func (k *search) next() (l plan.Level, more bool) {
	if k.done || k.levels >= searchLevels {
		k.end("it took too many levels: the target does not answer alike twice")
		return l, false
	}
	l = k.length
	l.Index, l.Rate = k.levels, k.rate()
	if k.close() {
		l.Rate, l.Confirms, l.Duration = k.lo, true, confirmLonger*l.Duration
	}
	k.levels++
	return l, true
}

// rate of the next level that is no confirmation, on a grid of thousandths.
func (k *search) rate() float64 {
	switch {
	case k.lo == 0 && k.hi == 0:
		return k.asked.From
	case k.hi == 0:
		return min(2*k.lo, k.asked.To)
	case k.lo == 0:
		return milli(k.hi / 2)
	}
	return milli((k.lo + k.hi) / 2)
}

func milli(v float64) float64 { return math.Round(v*1000) / 1000 }

// close reports that only the confirmation is left.
func (k *search) close() bool {
	switch {
	case k.lo == 0:
		return false
	case k.hi == 0:
		return k.lo >= k.asked.To
	}
	return k.hi-k.lo <= k.asked.Precision*k.hi || milli((k.lo+k.hi)/2) == k.lo
}

// see takes in what became of a level.
func (k *search) see(l plan.Level, lv *result.LoadLevel) {
	if lv.Met != nil {
		k.retries = 0
	}
	switch {
	case lv.Met == nil && lv.Generator.Saturated && k.retries < levelRetries:
		k.retries++ // a machine that others use for a moment
		return
	case lv.Met == nil:
		k.end(fmt.Sprintf("%.4g calls/s could not be judged: %s", l.Rate, lv.Why))
	case l.Confirms && *lv.Met:
		k.knee.Confirmations++
		k.knee.Met++
		if k.knee.Met == k.asked.Confirmations {
			k.confirmed()
		}
	case l.Confirms:
		k.hi, k.lo = l.Rate, k.below(l.Rate)
		k.knee.Confirmations, k.knee.Met = 0, 0
	case *lv.Met:
		k.lo = l.Rate
		k.met = append(k.met, l.Rate)
	default:
		k.hi = l.Rate
		if l.Rate <= lowest {
			k.end("not even the lowest rate met the SLO")
		}
	}
	k.note()
}

// lowest rate that is tried.
const lowest = 0.01

// below is where to search on under a rate that was not confirmed: the highest of
// those that met the SLO below it; 0 without one.
func (k *search) below(rate float64) float64 {
	for len(k.met) > 0 && k.met[len(k.met)-1] >= rate {
		k.met = k.met[:len(k.met)-1]
	}
	if len(k.met) == 0 {
		return 0
	}
	return k.met[len(k.met)-1]
}

func (k *search) confirmed() {
	rate := k.lo
	k.knee.Rate = &rate
	if k.hi == 0 {
		k.end("the rate of --knee-to met the SLO")
		return
	}
	k.end("the interval is as narrow as asked, and the rate confirmed")
}

func (k *search) end(why string) {
	if !k.done {
		k.done, k.knee.Ended = true, why
	}
}

// note keeps the interval with the knee.
func (k *search) note() {
	k.knee.Lo, k.knee.Hi = nil, nil
	if lo := k.lo; lo > 0 {
		k.knee.Lo = &lo
	}
	if hi := k.hi; hi > 0 {
		k.knee.Hi = &hi
	}
}
