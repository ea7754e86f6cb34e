package measure_test

import (
	"fmt"
	"math/rand/v2"
	"reflect"
	"sort"
	"strings"
	"testing"

	"ordeal/controller/measure"
)

func TestDump(t *testing.T) {
	m := map[string]map[string]bool{}
	add := func(k, v string) {
		if m[k] == nil {
			m[k] = map[string]bool{}
		}
		m[k][v] = true
	}
	run := func(in measure.Input) {
		probes, caveats := measure.Probes(in)
		for _, p := range probes {
			for n, x := range p.Metrics {
				k := "M " + p.Name + " " + n
				add(k, "u="+x.Unit+"/"+fmt.Sprint(reflect.TypeOf(x.Value)))
				if x.Interval != nil {
					add(k, "INTERVAL")
				}
				for _, c := range x.Caveats {
					add(k, c)
				}
			}
			for _, f := range p.Findings {
				add("F "+f.ID, string(f.Severity))
			}
		}
		for _, c := range caveats {
			if strings.Contains(c.ID, ".partial.") {
				c.ID = c.Probe + ".partial.STAGE"
			}
			add("C "+c.ID, string(c.Effect)+" "+c.Remedy+" "+string(c.Scope)+fmt.Sprint(len(c.Metrics)))
		}
	}
	run(*world())
	for _, c := range conditions {
		in := world()
		c.bring(in)
		run(*in)
	}
	for _, row := range published {
		run(measure.Input{Spec: row.scan.spec(), Survey: row.scan.survey(), Summary: row.scan.summary()})
	}
	for seed := range uint64(200) {
		run(chance{rand.New(rand.NewPCG(seed, 1))}.input())
	}
	var ks []string
	for k := range m {
		ks = append(ks, k)
	}
	sort.Strings(ks)
	for _, k := range ks {
		var vs []string
		for v := range m[k] {
			vs = append(vs, v)
		}
		sort.Strings(vs)
		fmt.Println(k, "=>", strings.Join(vs, " ; "))
	}
}
