package console

import (
	"bufio"
	"context"
	"io"
	"iter"
	"strings"
	"sync"
	"time"
)

const (
	eraseLine = "\r\x1b[K"
	working   = "…"
	// maxLine is the longest line that is read, in bytes.
	maxLine = 1 << 20
)

// terminal writes answers, previews and the prompt without mixing them up.
type terminal struct {
	in      io.Reader
	out     io.Writer
	prompt  string
	rewrite bool
	ended   chan struct{}

	mu sync.Mutex
	// prompted: the cursor stands behind a prompt. waiting: it stands behind the sign of work.
	prompted, waiting bool
	// shown is the text of the preview so far.
	shown string
}

func newTerminal(o Options) *terminal {
	return &terminal{in: o.In, out: o.Out, prompt: o.Prompt, rewrite: o.Rewrite, ended: make(chan struct{})}
}

// lines yields what is typed, without blank lines, until the input or ctx ends.
func (t *terminal) lines(ctx context.Context) iter.Seq[string] {
	return func(yield func(string) bool) {
		read := make(chan string)
		var reader sync.WaitGroup
		reader.Go(func() {
			defer close(t.ended)
			defer close(read)
			scanner := bufio.NewScanner(t.in)
			scanner.Buffer(nil, maxLine)
			for scanner.Scan() {
				select {
				case read <- scanner.Text():
				case <-ctx.Done():
					return
				}
			}
		})
		defer t.interrupt(&reader)
		t.ask()
		for {
			select {
			case <-ctx.Done():
				return
			case line, ok := <-read:
				if !ok {
					return
				}
				t.mu.Lock()
				t.prompted = false
				t.mu.Unlock()
				if strings.TrimSpace(line) == "" {
					t.ask()
				} else if !yield(line) {
					return
				}
			}
		}
	}
}

// interrupt ends a read and waits for it, where the reader can be interrupted.
func (t *terminal) interrupt(reader *sync.WaitGroup) {
	select {
	case <-t.ended:
	default:
		d, ok := t.in.(interface{ SetReadDeadline(time.Time) error })
		if !ok || d.SetReadDeadline(time.Unix(1, 0)) != nil {
			return
		}
	}
	reader.Wait()
}

// ask writes the prompt.
func (t *terminal) ask() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.writePrompt()
}

func (t *terminal) writePrompt() {
	if t.prompt == "" || t.prompted {
		return
	}
	t.prompted = true
	_, _ = io.WriteString(t.out, t.prompt)
}

// clear makes room for text at the beginning of a line. Called with mu held.
func (t *terminal) clear() string {
	switch {
	case t.waiting || t.prompted && t.rewrite:
		t.waiting, t.prompted = false, false
		return eraseLine
	case t.prompted:
		t.prompted = false
		return "\n"
	}
	return ""
}

// typing shows the sign of work, where it can be taken away again.
func (t *terminal) typing() error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if !t.rewrite || t.waiting || t.shown != "" || t.prompted {
		return nil
	}
	t.waiting = true
	_, err := io.WriteString(t.out, working)
	return err
}

// preview writes a piece of an answer.
func (t *terminal) preview(text string) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	_, err := io.WriteString(t.out, t.clear()+text)
	t.shown += text
	return err
}

// show writes an answer, as far as the preview has not shown it already.
func (t *terminal) show(text string) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	rest := t.clear()
	preview := strings.TrimRight(t.shown, "\n")
	if more, ok := strings.CutPrefix(text, preview); ok && preview != "" {
		rest += strings.TrimPrefix(more, t.shown[len(preview):])
	} else {
		if preview != "" {
			rest += "\n\n"
		}
		rest += text
	}
	t.shown = ""
	_, err := io.WriteString(t.out, rest+"\n\n")
	t.writePrompt()
	return err
}

// say writes a notice of the console itself.
func (t *terminal) say(text string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	_, _ = io.WriteString(t.out, t.clear()+text+"\n")
	t.writePrompt()
}
