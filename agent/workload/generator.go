package workload

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
)

// generator is a word that stands for a value, and how its arguments are read.
type generator struct {
	name, usage string
	read        func(c *compiler, v *value, args []string) error
}

// generators in the order they are listed to people. A function, because the
// reading of one refers to others' names.
func generators() []generator {
	return []generator{
		{"op", "op", plain(opNumber)},
		{"op_id", "op_id", plain(opID)},
		{"seq", "seq", plain(seqNumber)},
		{"user", "user", plain(userNumber)},
		{"uuid", "uuid", plain(uuid)},
		{"int", "int(a,b)", readInt},
		{"float", "float(a,b)", readFloat},
		{"normal", "normal(mean,sd)", readNormal},
		{"string", "string(n)", readString},
		{"choice", "choice(a|b|c)", nil}, // reads its arguments itself
		{"words", "words(n)", readWords},
		{"tokens", "tokens(mean,sd,min,max)", readTokens},
		{"text", "text(p50,p95)", readText},
		{"now_ms", "now_ms", plain(nowMS)},
	}
}

func findGenerator(name string) *generator {
	all := generators()
	if i := slices.IndexFunc(all, func(g generator) bool { return g.name == name }); i >= 0 {
		return &all[i]
	}
	return nil
}

// takesArgs leaves the name free for a feeder or variable, which has no brackets.
func (g *generator) takesArgs() bool { return strings.Contains(g.usage, "(") }

var errArgs = errors.New("wrong arguments")

func plain(k kind) func(*compiler, *value, []string) error {
	return func(_ *compiler, v *value, args []string) error {
		v.kind = k
		if args != nil {
			return errArgs
		}
		return nil
	}
}

// value reads the inside of ${...}.
func (c *compiler) value(expr string) (value, error) {
	var v value
	name, rest, called := strings.Cut(expr, "(")
	name = strings.TrimSpace(name)
	g := findGenerator(name)
	switch {
	case g == nil && called:
		return v, fmt.Errorf("unknown generator %.40q: known are %s", name, c.generatorNames())
	case g == nil, !called && g.takesArgs() && c.isNamed(expr):
		return c.named(expr)
	}
	var args []string
	if called {
		inside, found := strings.CutSuffix(strings.TrimSpace(rest), ")")
		if !found {
			return v, errors.New(") is missing at the end")
		}
		if g.name == "choice" {
			return readChoice(inside)
		}
		args = strings.Split(inside, ",")
		for i := range args {
			args[i] = strings.TrimSpace(args[i])
		}
	}
	if g.read == nil {
		return v, fmt.Errorf("want %s", g.usage)
	}
	switch err := g.read(c, &v, args); {
	case errors.Is(err, errArgs):
		return v, fmt.Errorf("want %s", g.usage)
	case err != nil:
		return v, fmt.Errorf("want %s: %w", g.usage, err)
	}
	return v, nil
}

func (c *compiler) generatorNames() string {
	var names []string
	for _, g := range generators() {
		names = append(names, g.usage)
	}
	return strings.Join(names, ", ")
}

func readInt(_ *compiler, v *value, args []string) (err error) {
	if v.kind = intBetween; len(args) != 2 {
		return errArgs
	}
	if v.lo, err = strconv.ParseInt(args[0], 10, 64); err != nil {
		return fmt.Errorf("%.30q is no whole number", args[0])
	}
	if v.hi, err = strconv.ParseInt(args[1], 10, 64); err != nil {
		return fmt.Errorf("%.30q is no whole number", args[1])
	}
	if v.lo > v.hi {
		return fmt.Errorf("%d is above %d", v.lo, v.hi)
	}
	return nil
}

func readFloat(_ *compiler, v *value, args []string) error {
	v.kind = floatBetween
	f, err := numbers(args, 2)
	if err != nil {
		return err
	}
	if v.a, v.b = f[0], f[1]; v.a > v.b || math.IsInf(v.b-v.a, 0) {
		return fmt.Errorf("no numbers lie between %s and %s", args[0], args[1])
	}
	return nil
}

func readNormal(_ *compiler, v *value, args []string) error {
	v.kind = normalNumber
	f, err := numbers(args, 2)
	if err != nil {
		return err
	}
	if v.a, v.b = f[0], f[1]; v.b < 0 || math.Abs(v.a) > 1e15 || v.b > 1e15 {
		return errors.New("sd is from 0, and both are at most 1e15")
	}
	v.decimals = min(max(decimals(args[0]), decimals(args[1])), 15)
	return nil
}

// decimals are the digits after the point of a number as it is written.
func decimals(text string) int {
	mantissa, exponent, _ := strings.Cut(strings.ToLower(text), "e")
	_, fraction, _ := strings.Cut(mantissa, ".")
	e, _ := strconv.Atoi(exponent)
	return max(0, len(fraction)-e)
}

// numbers reads n finite numbers.
func numbers(args []string, n int) ([]float64, error) {
	if len(args) != n {
		return nil, errArgs
	}
	out := make([]float64, n)
	for i, a := range args {
		f, err := strconv.ParseFloat(a, 64)
		if err != nil || math.IsNaN(f) || math.IsInf(f, 0) {
			return nil, fmt.Errorf("%.30q is no number", a)
		}
		out[i] = f
	}
	return out, nil
}

// maxString is the longest string(n).
const maxString = 1 << 20

func readString(_ *compiler, v *value, args []string) error {
	v.kind = randomString
	return readCount(&v.lo, args, maxString)
}

func readCount(n *int64, args []string, most int64) (err error) {
	if len(args) != 1 {
		return errArgs
	}
	if *n, err = strconv.ParseInt(args[0], 10, 64); err != nil || *n < 1 || *n > most {
		return fmt.Errorf("%.30q is no number from 1 to %d", args[0], most)
	}
	return nil
}

func readWords(_ *compiler, v *value, args []string) error {
	v.kind, v.text = madeText, &text{}
	l := &v.text.length
	err := readCount(&l.min, args, maxTokens)
	l.max = l.min
	return err
}

func readTokens(c *compiler, v *value, args []string) error {
	v.kind, v.text = madeText, &text{}
	f, err := c.lengths(v.text, args, 4)
	if err != nil {
		return err
	}
	if f[0] < 0 || f[1] < 0 || f[2] < 1 || f[2] > f[3] || f[3] > maxTokens {
		return fmt.Errorf("mean and sd are from 0, min from 1, max from min to %d", maxTokens)
	}
	v.text.length = textLength{mean: f[0], sd: f[1], min: int64(f[2]), max: int64(f[3])}
	return nil
}

func readText(c *compiler, v *value, args []string) error {
	v.kind, v.text = madeText, &text{}
	f, err := c.lengths(v.text, args, 2)
	if err != nil {
		return err
	}
	if f[0] < 1 || f[0] > f[1] || f[1] > maxTokens {
		return fmt.Errorf("p50 is from 1, p95 from p50 to %d", maxTokens)
	}
	v.text.length = textLength{spread: newLogNormal(f[0], f[1]), min: 1, max: maxTokens}
	return nil
}

// lengths reads n numbers and, if there is one more argument, the source of a text.
func (c *compiler) lengths(t *text, args []string, n int) ([]float64, error) {
	if len(args) == n+1 {
		f, column, err := c.column(args[n])
		if err != nil {
			return nil, err
		}
		if t.feeder, t.source = f, c.corpus(f, column); len(t.source.text) == len(t.source.starts)*len(`\n`) {
			return nil, fmt.Errorf("%.40q holds no text", args[n])
		}
		args = args[:n]
	}
	return numbers(args, n)
}

// corpus is made once for each column.
func (c *compiler) corpus(feeder, column int) *corpus {
	f := &c.plan.feeders[feeder]
	if f.corpora == nil {
		f.corpora = map[int]*corpus{}
	}
	if f.corpora[column] == nil {
		f.corpora[column] = newCorpus(f.rows, column)
	}
	return f.corpora[column]
}
