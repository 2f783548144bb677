// Package agent is the engine that all channels share: it runs one turn of a conversation over its
// history, calls the model and the tools until there is an answer, and returns the items to remember.
//
// # Contract
//
// The engine writes nothing. The caller loads the history, commits the items of Final, and delivers the
// text; a run that is interrupted at any moment therefore leaves no trace, and may be run again.
//
// # What a run does
//
//   - What people said becomes items; where several people share a session, each names its speaker in a
//     header that none of them can forge.
//   - The guards of the agent judge it.
//   - A history that has outgrown its budget is summed up, or its oldest turns are left out.
//   - The history is repaired, so that no provider refuses it, whoever wrote it (Repair).
//   - The first model of the chain that can answers. Its tool calls run side by side and within bounds, and
//     whatever goes wrong in them is told to the model. Another agent may take over or be asked.
//   - After MaxModelCalls, or when the model only repeats itself, tools are forbidden: there is always an
//     answer in words.
//
// # Concurrency
//
// Engine, Model, Tool and Guard are safe for concurrent use and keep no state between runs.
package agent
