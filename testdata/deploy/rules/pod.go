package main

import (
	"fmt"
	"slices"
)

// minGrace is the least time in seconds that a pod gets to leave: well above a
// unit, which lasts 1-5 s.
const minGrace = 30

// volumeKinds are those that "restricted" allows.
var volumeKinds = []string{"configMap", "csi", "downwardAPI", "emptyDir", "ephemeral", "persistentVolumeClaim", "projected", "secret"}

// podTemplate is the pod an object starts, or nil.
func podTemplate(o object) any {
	switch text(o, "kind") {
	case "Deployment", "StatefulSet", "DaemonSet", "Job":
		return at(o, "spec", "template")
	case "CronJob":
		return at(o, "spec", "jobTemplate", "spec", "template")
	case "Pod":
		return o
	}
	return nil
}

func podProblems(o object) []string {
	template := podTemplate(o)
	if template == nil {
		return nil
	}
	pod := at(template, "spec")
	var out []string
	want := func(ok bool, format string, args ...any) {
		if !ok {
			out = append(out, fmt.Sprintf(format, args...))
		}
	}
	want(at(pod, "securityContext", "runAsNonRoot") == true, "pod: runAsNonRoot is not true")
	want(text(pod, "securityContext", "seccompProfile", "type") == "RuntimeDefault", "pod: seccompProfile is not RuntimeDefault")
	want(at(pod, "securityContext", "runAsUser") != 0, "pod: runs as user 0")
	want(at(pod, "automountServiceAccountToken") == false, "pod: carries a service account token")
	for _, key := range []string{"hostNetwork", "hostPID", "hostIPC"} {
		want(at(pod, key) == nil, "pod: %s is set", key)
	}
	grace, _ := at(pod, "terminationGracePeriodSeconds").(int)
	want(grace >= minGrace, "pod: %d s to leave, want %d or more", grace, minGrace)
	for _, v := range list(pod, "volumes") {
		for kind := range v.(object) {
			want(kind == "name" || slices.Contains(volumeKinds, kind), "volume %s: kind %s", text(v, "name"), kind)
		}
	}
	containers := slices.Concat(list(pod, "initContainers"), list(pod, "containers"))
	want(len(containers) > 0, "pod: has no container")
	for _, c := range containers {
		out = append(out, containerProblems(c, grace)...)
	}
	return out
}

func containerProblems(c any, grace int) []string {
	var out []string
	want := func(ok bool, what string) {
		if !ok {
			out = append(out, fmt.Sprintf("container %s: %s", text(c, "name"), what))
		}
	}
	security := at(c, "securityContext")
	want(at(security, "allowPrivilegeEscalation") == false, "allowPrivilegeEscalation is not false")
	want(at(security, "readOnlyRootFilesystem") == true, "readOnlyRootFilesystem is not true")
	want(slices.Contains(list(security, "capabilities", "drop"), any("ALL")), "does not drop ALL capabilities")
	want(at(security, "capabilities", "add") == nil, "adds capabilities")
	want(at(security, "privileged") == nil, "privileged is set")
	want(at(security, "runAsUser") != 0, "runs as user 0")
	for _, path := range [][]string{{"requests", "cpu"}, {"requests", "memory"}, {"limits", "memory"}} {
		want(at(c, append([]string{"resources"}, path...)...) != nil, "no resources."+path[0]+"."+path[1])
	}
	for _, p := range list(c, "ports") {
		want(at(p, "hostPort") == nil, "takes a port of the host")
	}
	if preStop := at(c, "lifecycle", "preStop"); preStop != nil {
		seconds, _ := at(preStop, "sleep", "seconds").(int)
		want(seconds > 5, "preStop is no sleep longer than a unit (5 s)")
		want(seconds < grace, "preStop uses up the whole time to leave")
	}
	return out
}
