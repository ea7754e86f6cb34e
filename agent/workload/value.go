package workload

import (
	"math/bits"
	"strconv"
	"time"

	"ordeal/faultproxy/schedule"
)

// kind of a value.
type kind uint8

const (
	opNumber kind = iota
	opID
	seqNumber
	userNumber
	uuid
	intBetween
	floatBetween
	normalNumber
	randomString
	oneOfSeveral
	madeText
	nowMS
	feederColumn
	variable
)

// value is what stands in a template for something to be put in. Draws are on its
// lane and the next one, under the key of its step.
type value struct {
	kind     kind
	lane     schedule.Lane
	lo, hi   int64   // int; lo: length of a string
	a, b     float64 // float, normal
	decimals int
	options  []cell
	text     *text
	feeder   int
	column   int
	slot     int // of a variable
}

// append appends the value for the run's operation: as a JSON value of its own,
// or as part of a string.
func (r *Run) append(buf []byte, v *value, lone bool) []byte {
	switch v.kind {
	case uuid, opID, randomString, madeText:
		if !lone {
			return r.appendText(buf, v)
		}
		return append(r.appendText(append(buf, '"'), v), '"')
	case oneOfSeveral:
		return v.options[schedule.Below(r.draw(v), uint64(len(v.options)))].append(buf, lone)
	case feederColumn:
		f := &r.plan.feeders[v.feeder]
		return f.rows[f.row(r.plan.stream, r.op)][v.column].append(buf, lone)
	case variable:
		if lone {
			return append(buf, r.vars[v.slot]...)
		}
		return appendInside(buf, r.vars[v.slot])
	}
	return r.appendNumber(buf, v)
}

func (c *cell) append(buf []byte, lone bool) []byte {
	if lone {
		return append(buf, c.lone...)
	}
	return append(buf, c.inside...)
}

func (r *Run) appendNumber(buf []byte, v *value) []byte {
	switch v.kind {
	case opNumber:
		return strconv.AppendUint(buf, r.op, 10)
	case seqNumber:
		return strconv.AppendUint(buf, r.op*r.plan.most+uint64(r.next-1), 10)
	case userNumber:
		return strconv.AppendInt(buf, int64(r.user), 10)
	case intBetween:
		return strconv.AppendInt(buf, schedule.Between(r.draw(v), v.lo, v.hi), 10)
	case floatBetween:
		return strconv.AppendFloat(buf, between(r.draw(v), v.a, v.b), 'g', -1, 64)
	case normalNumber:
		return strconv.AppendFloat(buf, normal(v.a, v.b, standard(r.draw(v))), 'f', v.decimals, 64)
	}
	return strconv.AppendInt(buf, time.Now().UnixMilli(), 10)
}

// appendText appends one of the kinds that are text, none of which needs escapes.
func (r *Run) appendText(buf []byte, v *value) []byte {
	switch v.kind {
	case opID:
		return appendHex(append(buf, "ordeal-"...), r.plan.stream.Draw(opIDKey, r.op, 0, laneWhole), 16)
	case uuid:
		return appendUUID(buf, r.plan.stream.Block(r.op, 0, v.lane, r.key()))
	case randomString:
		return r.appendString(buf, v)
	}
	return v.text.append(buf, r.plan, r.op, v.lane, r.key())
}

// appendHex appends the n high digits of a word.
func appendHex(buf []byte, w uint64, n int) []byte {
	for range n {
		buf = append(buf, hexDigits[w>>60])
		w <<= 4
	}
	return buf
}

// appendUUID appends a random UUID (RFC 9562, version 4).
func appendUUID(buf []byte, words [4]uint64) []byte {
	hi := words[0]&^0xF000 | 0x4000
	lo := words[1]&^(3<<62) | 2<<62
	buf = append(appendHex(buf, hi, 8), '-')
	buf = append(appendHex(buf, hi<<32, 4), '-')
	buf = append(appendHex(buf, hi<<48, 4), '-')
	buf = append(appendHex(buf, lo, 4), '-')
	return appendHex(buf, lo<<16, 12)
}

const alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789"

// lettersPerWord of a draw: one more, and the chances of letters would differ by
// more than 10^-4.
const lettersPerWord = 8

func (r *Run) appendString(buf []byte, v *value) []byte {
	var block [4]uint64
	for i := range v.lo {
		if i%(4*lettersPerWord) == 0 {
			block = r.plan.stream.Block(r.op, uint32(i/(4*lettersPerWord)), v.lane, r.key())
		}
		w := &block[i/lettersPerWord%4]
		letter, rest := bits.Mul64(*w, uint64(len(alphabet)))
		*w = rest
		buf = append(buf, alphabet[letter])
	}
	return buf
}

func (r *Run) draw(v *value) uint64 { return r.plan.stream.Draw(r.key(), r.op, 0, v.lane) }

// key is that of the step at hand.
func (r *Run) key() schedule.RuleKey { return r.scenario.steps[r.next-1].key }
