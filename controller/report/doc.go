// Package report renders a result document: one file per format.
//
// In goes a result.Document, out come bytes. Every format renders from the
// document alone, so a stored result can be shown again in any of them. The
// package measures nothing, judges nothing, reads no clock and opens no file.
//
//	scorecard.go   the terminal            Scorecard, Refused
//	verdict.go     one line, and ci lines  Verdict, FailedChecks
//	json.go        the document itself     JSON, RefusalJSON, ParseJSON
//	markdown.go    REPORT.md               Markdown
//	agentsmd.go    AGENTS.md, fix guide    AgentsMD
//	fleet*.go      who measured: a block of each of them but the JSON
//	load*.go       a load test             LoadScorecard, LoadHTML, HDRLog, HGRM, PeriodsCSV, LiveJSON
//
// # Hostile text
//
// A document holds text a server chose: names, messages, arguments. None of it
// reaches a terminal or a page as it came. [clean] turns control characters,
// escape sequences, bidirectional marks and broken UTF-8 into visible escapes;
// Markdown punctuation is escaped on top, and longer quotations sit in a fence
// longer than any run of backquotes inside. In the fix guide, which is written
// to be read by a coding agent, quotations are also named as such.
//
// # Numbers
//
// A real value is never shown as zero and a value short of one never as 100 %:
// see quantity.go. Points and scores are rounded down, so that 19.97 of 20
// does not read 20/20 and 74.96 does not seem to reach 75.
package report
