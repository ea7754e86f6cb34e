package main

import (
	"fmt"
	"testing"
	"time"
)

func TestFaultGangLook(t *testing.T) {
	tg := newTarget(t, 20*time.Millisecond)
	w := newWorld(t, "a", "b", "c")
	scan := w.scan(tg.args("--probes", "concurrency", "--concurrency", "8", "--requests", "160")...)
	doc := w.report(scan)
	fmt.Println(scan.Stdout())
	t.Log(len(tg.seen()), doc.Run.Calls)
	n := map[string]int{}
	for _, c := range tg.seen() {
		n[c.caller]++
	}
	t.Log(n)
	miss := 0
	for _, o := range operations(0, 640) {
		if tg.times()[o] != 1 {
			miss++
		}
	}
	t.Log(miss, tg.seen()[:5])
}
