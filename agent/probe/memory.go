package probe

import (
	"math"
	"runtime/debug"
	rtmetrics "runtime/metrics"
)

// memoryMilli is the thousandths of the memory it may use that the process has in
// use: by GOMEMLIMIT and its control groups. 0 without a limit.
func memoryMilli() int64 {
	limit := min(debug.SetMemoryLimit(-1), groupMemory()) // a negative limit only asks
	if limit == math.MaxInt64 || limit <= 0 {
		return 0
	}
	s := [2]rtmetrics.Sample{{Name: "/memory/classes/total:bytes"}, {Name: "/memory/classes/heap/released:bytes"}}
	rtmetrics.Read(s[:])
	if s[0].Value.Kind() != rtmetrics.KindUint64 || s[1].Value.Kind() != rtmetrics.KindUint64 {
		return 0
	}
	used := s[0].Value.Uint64() - s[1].Value.Uint64()
	return int64(float64(used) * 1000 / float64(limit))
}
