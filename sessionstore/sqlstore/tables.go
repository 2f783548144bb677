package sqlstore

import (
	"math"
	"strings"
)

// maxRow is above every row number.
const maxRow = math.MaxInt64

// schemaVersion is that of the tables whose names begin with botd_.
const schemaVersion = 1

// tables are the names of the tables that a store uses. The side tables of a pair of tables with names of
// their own have names of their own too, so that two stores can share a database.
type tables struct {
	sessions, messages, side string
	quote                    string
}

func newTables(o Options, quote string) tables {
	t := tables{sessions: o.SessionsTable, messages: o.MessagesTable, side: "botd_", quote: quote}
	if o.MessagesTable != DefaultMessagesTable {
		t.side += o.MessagesTable + "_"
	}
	return t
}

// fill puts the tables' names into a statement: {sessions}, {messages}, {botd_…} for a side table, and
// {idx_…} for the name of an index on the messages.
func (t tables) fill(statement string) string {
	q := t.quote
	return strings.NewReplacer(
		"{sessions}", q+t.sessions+q,
		"{messages}", q+t.messages+q,
		"{botd_schema}", q+t.side+"schema"+q,
		"{botd_sessions}", q+t.side+"sessions"+q,
		"{botd_turns}", q+t.side+"turns"+q,
		"{botd_items}", q+t.side+"items"+q,
		"{idx_session_id}", q+"idx_"+t.messages+"_session_id"+q,
		"{idx_session_time}", q+"idx_"+t.messages+"_session_time"+q,
		"{idx_botd}", q+t.side+"idx_session_row"+q,
		"{idx_botd_ids}", q+t.side+"idx_session_ids"+q,
		"{idx_botd_own_ids}", q+t.side+"idx_own_session_ids"+q,
	).Replace(statement)
}

// all fills every statement.
func (t tables) all(statements []string) []string {
	filled := make([]string, len(statements))
	for i, s := range statements {
		filled[i] = t.fill(s)
	}
	return filled
}
