package dispatch

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"botd/channels"
	"botd/sessionstore"
)

// commandKind is what a command does.
type commandKind uint8

const (
	notCommand commandKind = iota
	commandHelp
	commandReset
	commandStop
	commandUndo
	commandRestore
	// commandRetry waits among the messages of its lane: it is answered by a turn.
	commandRetry
	// commandUnsend takes one message back, silently.
	commandUnsend
	// commandRefused is one whose giver has no right to give it.
	commandRefused
)

// command is one that waits or runs.
type command struct {
	kind commandKind
	// entry is the event that gave it, nil for an admin's.
	entry *Entry
	// result takes the outcome of an admin's command; it is buffered.
	result chan error
}

// mention is a platform's way to write whom a message speaks to: <@123> and <@!123> on Discord, <@&123>
// for a role there, @name on LINE.
var mention = regexp.MustCompile(`^(?:<@[!&]?[0-9]+>|[@＠][^\s\p{Z}]+)`)

// parseCommand returns the command that an event gives. Only a text that is a command as a whole is
// one, so that everything else reaches the model.
func parseCommand(in channels.Inbound) commandKind {
	for _, p := range in.Parts {
		if p.Type != channels.Text {
			return notCommand
		}
	}
	text := strings.TrimSpace(in.PlainText())
	if in.Mentioned {
		text = strings.TrimSpace(mention.ReplaceAllString(text, ""))
	}
	switch strings.ToLower(halfWidth(text)) {
	case "/help":
		return commandHelp
	case "/reset", "/new":
		return commandReset
	case "/stop":
		return commandStop
	case "/undo":
		return commandUndo
	case "/restore":
		return commandRestore
	case "/retry":
		return commandRetry
	}
	return notCommand
}

// halfWidth turns the full-width forms that East Asian keyboards give into ASCII.
func halfWidth(s string) string {
	return strings.Map(func(r rune) rune {
		if r >= '！' && r <= '～' {
			return r - '！' + '!'
		}
		return r
	}, s)
}

// Reset forgets a session as /reset does, without a reply: a running turn is cancelled, every message
// accepted before is covered, and who had asked is told. It returns once that is durable. When ctx ends
// first, the reset may still happen. Errors: ErrNotReady, ErrDraining, sessionstore.ErrInvalidID.
func (d *Dispatcher) Reset(ctx context.Context, id sessionstore.ID) error {
	if err := id.Validate(); err != nil {
		return fmt.Errorf("reset session: %w", err)
	}
	c := &command{kind: commandReset, result: make(chan error, 1)}
	if err := d.order(id, c); err != nil {
		return fmt.Errorf("reset session: %w", err)
	}
	select {
	case err := <-c.result:
		if err != nil {
			return fmt.Errorf("reset session: %w", err)
		}
		return nil
	case <-ctx.Done():
		return fmt.Errorf("reset session: %w", ctx.Err())
	}
}

func (d *Dispatcher) order(id sessionstore.ID, c *command) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	switch d.phase {
	case working:
	case draining:
		return ErrDraining
	default:
		return ErrNotReady
	}
	l := d.lane(id)
	l.commands = append(l.commands, c)
	d.schedule(l)
	return nil
}

// runCommands works through the commands of a lane.
func (d *Dispatcher) runCommands(l *lane) {
	for c := d.nextCommand(l); c != nil; c = d.nextCommand(l) {
		err := d.runCommand(l, c)
		if c.result != nil {
			c.result <- err
		}
	}
}

// nextCommand takes a command; when there is none, it lets the lane go on.
func (d *Dispatcher) nextCommand(l *lane) *command {
	d.mu.Lock()
	defer d.mu.Unlock()
	if len(l.commands) == 0 || d.hard.Err() != nil {
		for _, c := range l.commands {
			if c.result != nil {
				c.result <- ErrDraining
			}
		}
		l.commands, l.commanding = nil, false
		d.schedule(l)
		return nil
	}
	c := l.commands[0]
	l.commands = slices.Delete(l.commands, 0, 1)
	return c
}

// runCommand runs one command until what it does is durable, or it turns out to be done already. An
// error means that the dispatcher was cut off; what is undone then stays in the inbox.
func (d *Dispatcher) runCommand(l *lane, c *command) error {
	for {
		covered, err := d.cover(l, c)
		if err != nil {
			return err
		}
		err = d.obey(l, c, covered)
		switch {
		case err == nil:
			return nil
		case !errors.Is(err, ErrConsumed):
			return err
		}
		d.recheck(append(covered, c.entries()...))
		if c.entry != nil {
			// When it is still to be done, it has come back to the lane.
			return nil
		}
	}
}

func (c *command) entries() []Entry {
	if c.entry == nil {
		return nil
	}
	return []Entry{*c.entry}
}

// obey does what a command says, anew when somebody else has changed the session meanwhile.
func (d *Dispatcher) obey(l *lane, c *command, covered []Entry) error {
	for {
		err := d.obeyOnce(l, c, covered)
		if !errors.Is(err, sessionstore.ErrChanged) {
			return err
		}
		c.entry.Reason = ""
	}
}

// obeyOnce writes what a command does, together with the replies to everybody concerned.
func (d *Dispatcher) obeyOnce(l *lane, c *command, covered []Entry) error {
	all := append(c.entries(), covered...)
	r := TurnResult{Session: l.id, Consumed: seqs(all), Clear: c.kind == commandReset}
	var says []speech
	if c.entry == nil {
		// Nothing identifies an admin's reset: it is not run again after a restart.
		r.Turn = strings.ToLower(rand.Text()[:16])
	} else {
		r.Turn = turnID(*c.entry, 1)
		var err error
		if says, err = d.carryOut(l, c, covered, &r); err != nil {
			return err
		}
	}
	if c.kind == commandReset {
		for _, e := range askers(covered, c.entry) {
			says = append(says, d.notice(e, textOvertaken))
		}
	}
	if err := d.compose(&r, says...); err != nil {
		d.log.Error("notice not composed", "session", string(l.id), "turn", r.Turn, "err", err)
	}
	if err := d.writeNotice(r, all); err != nil {
		return err
	}
	d.log.Info("command done", "session", string(l.id), "turn", r.Turn, "command", c.kind.String(), "covered", len(covered))
	return nil
}

func (k commandKind) String() string {
	return [...]string{"none", "help", "reset", "stop", "undo", "restore", "retry", "unsend", "refused"}[k]
}

// carryOut prepares what the commit of a command is to do to the session, does what no commit can, and
// returns what the giver is told.
func (d *Dispatcher) carryOut(l *lane, c *command, covered []Entry, r *TurnResult) (says []speech, err error) {
	var told speech
	switch c.kind {
	case commandHelp:
		told = d.help(*c.entry)
	case commandReset:
		told, err = d.forgotten(l, c)
	case commandRestore:
		told, err = d.restored(l, c)
	case commandRefused:
		told = d.notice(*c.entry, textAdminsOnly)
	case commandUndo:
		r.Undo, err = d.undone(l, c, covered)
		told = d.notice(*c.entry, undoText(covered, *r))
	case commandUnsend:
		if len(covered) > 0 {
			r.Undo, err = d.undone(l, c, covered)
		}
		return nil, err
	case commandStop:
		told = d.notice(*c.entry, stopText(covered))
	}
	return []speech{told}, err
}

func stopText(covered []Entry) textKey {
	if len(covered) > 0 {
		return textStopped
	}
	return textNothingToStop
}

// askers returns the newest message of each person among the covered ones, without that of the
// command's giver. People whom the platform does not tell are told apart by their messages.
func askers(covered []Entry, giver *Entry) []Entry {
	var newest []Entry
	for _, e := range covered {
		if giver != nil && samePerson(e, *giver) {
			continue
		}
		same := func(o Entry) bool { return samePerson(e, o) }
		if i := slices.IndexFunc(newest, same); i >= 0 {
			newest[i] = e
			continue
		}
		newest = append(newest, e)
	}
	return newest
}

// cover takes the messages away that a command is about, and ends the running turn if it is one of
// them. A turn that is being committed is waited for instead.
func (d *Dispatcher) cover(l *lane, c *command) ([]Entry, error) {
	if c.kind == commandHelp || c.kind == commandRefused {
		return nil, nil
	}
	said, err := d.said(l, c)
	if err != nil {
		return nil, err
	}
	for {
		covered, busy := d.takeAway(l, c, said)
		if busy == nil {
			return covered, nil
		}
		<-busy.done
	}
}

// takeAway is one attempt of cover. It returns the turn to be waited for, if there is one.
func (d *Dispatcher) takeAway(l *lane, c *command, said string) (covered []Entry, busy *turn) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if t := l.turn; t != nil && !c.leaves(l) {
		if turnPrefix(t.entries[0]) == said || !d.revoke(t) {
			return nil, t
		}
		if c.kind == commandUndo || c.kind == commandRestore || c.kind == commandUnsend {
			// What the command is not about is answered again, by what the session holds then.
			l.insert(t.entries...)
		} else {
			covered = append(covered, t.entries...)
		}
	}
	l.pending = slices.DeleteFunc(l.pending, func(e Entry) bool {
		if !c.concerns(e) || turnPrefix(e) == said {
			return false
		}
		covered = append(covered, e)
		return true
	})
	return covered, nil
}

// leaves reports whether a command has no reason to end the running turn: what it takes back waits
// behind somebody else's. Called with Dispatcher.mu held.
func (c *command) leaves(l *lane) bool {
	switch {
	case slices.ContainsFunc(l.turn.entries, c.concerns):
		return false
	case c.kind == commandUndo:
		return slices.ContainsFunc(l.pending, c.concerns)
	}
	return c.kind == commandUnsend
}

// concerns reports whether a command covers a waiting message. Who may give which command is decided
// before: see channel.command.
func (c *command) concerns(e Entry) bool {
	switch {
	case c.entry == nil:
		return true
	case c.kind == commandUnsend:
		return takesBack(*c.entry, e)
	case e.Seq > c.entry.Seq:
		return false
	}
	switch c.kind {
	case commandReset:
		return true
	case commandRestore:
		return false
	}
	return samePerson(e, *c.entry)
}

// said finds out whether the first message of the lane has an answer in the session already, left by a
// run that was interrupted between session and journal. Such an answer is as good as said: it cannot be
// stopped, only be forgotten. It returns the prefix of that turn's ID.
func (d *Dispatcher) said(l *lane, c *command) (prefix string, err error) {
	if d.atomic || c.kind != commandStop {
		return "", nil
	}
	var history []sessionstore.Item
	err = d.persist(d.logAbout(l.id, c.entries()), func() (err error) {
		history, err = d.opts.Store.Items(d.hard, l.id, d.live.Load().MaxHistory)
		return err
	})
	if err != nil {
		return "", err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	first := l.pending
	if l.turn != nil {
		first = l.turn.entries
	}
	if len(first) == 0 {
		return "", nil
	}
	if _, n := storedTurn(history, first[0]); n == 0 {
		return "", nil
	}
	return turnPrefix(first[0]), nil
}
