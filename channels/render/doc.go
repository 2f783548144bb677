// Package render turns a model's Markdown into the text that a platform shows, and cuts long text into
// pieces that fit a platform's limit.
//
// Plain is for platforms without markup (LINE), Discord for Discord's own dialect of Markdown. Both read
// CommonMark with GitHub's tables, task lists and strikethrough by a parser, never by patterns, so that
// code stays verbatim whatever it holds. Two deviations from CommonMark serve what models really write:
// emphasis closes next to letters of scripts without spaces (Chinese, Japanese, Korean, Thai …), and a single tilde
// never strikes out, for it means a range ("10~20").
//
// Split cuts text for a platform without markup, SplitFenced for one that shows code fences: a fence cut
// in two is closed in the first piece and opened again, with its language, in the next.
//
// # Cost
//
// All functions take time and memory linear in the length of their input, whatever it holds: long
// documents are parsed in sections, nesting is bounded, and a section with an absurd number of links,
// emphasis marks or table cells is read without these.
//
// # Concurrency
//
// All functions are pure and safe for concurrent use.
package render
