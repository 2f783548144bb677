// Package config reads botd's configuration: one strict YAML file, or the environment alone.
//
// Load reports every problem at once, each with its file, line, column, the lines around it and a remedy.
// Nothing is guessed: an unknown key, a key given twice, a value of the wrong type, an unset ${VARIABLE}
// or a name that nothing defines is an error.
//
// # Values
//
// ${NAME} in a scalar is replaced by the environment variable NAME, which must be set; $$ stands for one
// dollar sign. The replacement happens after the YAML is parsed, so a value can never change the structure
// of the document. Every secret KEY, and an agent's instructions, can be read from a file instead by
// KEY_file; such a path is relative to the configuration file, and white space at the end of the file's
// content is dropped.
//
// # Secrets
//
// A Secret prints, logs and marshals as [redacted]. The lines shown with a problem have the values of
// secrets masked as well.
//
// # Concurrency
//
// A Config is not changed after Load returned it and may be read from everywhere.
package config
