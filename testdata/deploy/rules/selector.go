package main

import (
	"fmt"
	"slices"
)

// selectorProblems are selectors in o that select none of the objects: to the
// server a misspelled label is as good as any.
func selectorProblems(o object, objects []object) []string {
	var out []string
	want := func(where string, labels any, among []any) {
		if labels != nil && !slices.ContainsFunc(among, func(have any) bool { return covers(have, labels) }) {
			out = append(out, fmt.Sprintf("%s selects nothing: %v", where, labels))
		}
	}
	pods := podLabels(objects)
	switch text(o, "kind") {
	case "Deployment", "StatefulSet":
		want("selector", at(o, "spec", "selector", "matchLabels"), podLabels([]object{o}))
	case "PodDisruptionBudget", "PodMonitor":
		want("selector", at(o, "spec", "selector", "matchLabels"), pods)
	case "Service":
		want("selector", at(o, "spec", "selector"), pods)
	case "ServiceMonitor":
		want("selector", at(o, "spec", "selector", "matchLabels"), serviceLabels(objects))
	case "NetworkPolicy":
		want("podSelector", at(o, "spec", "podSelector", "matchLabels"), pods)
		for _, peer := range ownPeers(o) {
			want("peer", at(peer, "podSelector", "matchLabels"), pods)
		}
	}
	return out
}

// unguarded are the pods that no NetworkPolicy selects, when there are policies.
func unguarded(objects []object) []string {
	var guards []any
	for _, o := range objects {
		if text(o, "kind") == "NetworkPolicy" {
			guards = append(guards, at(o, "spec", "podSelector", "matchLabels"))
		}
	}
	var out []string
	for _, pod := range podLabels(objects) {
		if len(guards) > 0 && !slices.ContainsFunc(guards, func(g any) bool { return covers(pod, g) }) {
			out = append(out, fmt.Sprintf("no NetworkPolicy selects the pods with %v", pod))
		}
	}
	return out
}

func podLabels(objects []object) []any {
	var out []any
	for _, o := range objects {
		if template := podTemplate(o); template != nil {
			out = append(out, at(template, "metadata", "labels"))
		}
	}
	return out
}

func serviceLabels(objects []object) []any {
	var out []any
	for _, o := range objects {
		if text(o, "kind") == "Service" {
			out = append(out, at(o, "metadata", "labels"))
		}
	}
	return out
}

// ownPeers are the peers of a policy that lie in its own namespace.
func ownPeers(o object) []any {
	var out []any
	for direction, side := range map[string]string{"ingress": "from", "egress": "to"} {
		for _, rule := range list(o, "spec", direction) {
			for _, peer := range list(rule, side) {
				if at(peer, "podSelector") != nil && at(peer, "namespaceSelector") == nil {
					out = append(out, peer)
				}
			}
		}
	}
	return out
}

// covers says whether have holds all of want.
func covers(have, want any) bool {
	w, ok := want.(object)
	for key, value := range w {
		ok = ok && at(have, key) == value
	}
	return ok
}
