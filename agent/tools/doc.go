// Package tools holds the tools that come with botd. Each is safe for concurrent use and touches neither
// network nor disk.
package tools
