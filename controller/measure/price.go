package measure

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math"

	"gopkg.in/yaml.v3"
)

// Price of a model in USD per million tokens.
type Price struct {
	In  float64 `yaml:"in"`
	Out float64 `yaml:"out"`
}

// Prices by model name.
type Prices map[string]Price

// BuiltinPrices are Anthropic's first-party list prices. Other vendors and
// resellers have their own: a model that is not listed has no price here.
func BuiltinPrices() Prices {
	return Prices{
		"claude-fable-5-1":  {10, 50},
		"claude-fable-5":    {10, 50},
		"claude-mythos-5-1": {10, 50},
		"claude-opus-5":     {5, 25},
		"claude-opus-4-8":   {5, 25},
		"claude-opus-4-7":   {5, 25},
		"claude-opus-4-6":   {5, 25},
		"claude-sonnet-5":   {2, 10},
		"claude-sonnet-4-6": {3, 15},
		"claude-haiku-4-5":  {1, 5},
	}
}

// ParsePrices reads a price file, YAML or JSON: a map from model name to
// {in: USD, out: USD} per million tokens. Unknown keys, missing and negative
// prices are errors.
func ParsePrices(data []byte) (Prices, error) {
	var raw map[string]map[string]float64
	dec := yaml.NewDecoder(bytes.NewReader(data))
	if err := dec.Decode(&raw); err != nil && !errors.Is(err, io.EOF) {
		return nil, fmt.Errorf("price file: want a map of model: {in: USD, out: USD}: %w", err)
	}
	prices := Prices{}
	var errs []error
	for model, fields := range raw {
		in, okIn := fields["in"]
		out, okOut := fields["out"]
		switch {
		case len(fields) != 2 || !okIn || !okOut:
			errs = append(errs, fmt.Errorf("price file: %q needs exactly in and out, USD per million tokens", model))
		case !price(in) || !price(out):
			errs = append(errs, fmt.Errorf("price file: %q has a price that is not a number from 0 up", model))
		}
		prices[model] = Price{in, out}
	}
	if err := errors.Join(errs...); err != nil {
		return nil, err
	}
	return prices, nil
}

func price(v float64) bool { return v >= 0 && !math.IsInf(v, 0) }

// price of the scanned model and where it comes from: the flags of the scan
// (override), the price table (table), or nowhere (empty).
func (in *Input) price() (p Price, source string) {
	if in.Spec.PriceIn > 0 || in.Spec.PriceOut > 0 {
		return Price{in.Spec.PriceIn, in.Spec.PriceOut}, "override"
	}
	if p, ok := in.Prices[in.Spec.Target.Model]; ok && in.Spec.Target.Model != "" {
		return p, "table"
	}
	return Price{}, ""
}
