package demo_test

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"botd/cmd/botd/internal/demo"
)

var screenshot = flag.String("screenshot", "", "write a picture of the page to this `file`")

// requireVariable turns the lack of a browser into a failure.
const requireVariable = "BOTD_REQUIRE_CHROMIUM"

// browser is one tab of a headless browser.
type browser struct {
	t   *testing.T
	ctx context.Context

	mu sync.Mutex
	// complaints are errors of scripts and refusals of the page's policy; requests all that was asked for.
	complaints, requests []string
}

func newBrowser(t *testing.T) *browser {
	t.Helper()
	var path string
	for _, name := range []string{"chromium", "chromium-browser", "google-chrome", "chrome"} {
		if found, err := exec.LookPath(name); err == nil {
			path = found
			break
		}
	}
	if path == "" {
		if os.Getenv(requireVariable) != "" {
			t.Fatalf("no Chromium is installed, and %s asks for one", requireVariable)
		}
		t.Skip("no Chromium is installed")
	}
	options := []chromedp.ExecAllocatorOption{
		chromedp.ExecPath(path), chromedp.UserDataDir(t.TempDir()), chromedp.NoFirstRun, chromedp.NoSandbox, chromedp.Headless,
		chromedp.DisableGPU, chromedp.Flag("disable-quic", true), chromedp.Flag("disable-background-networking", true),
		chromedp.Flag("disable-component-update", true), chromedp.Flag("disable-sync", true), chromedp.WindowSize(1440, 900),
	}
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	t.Cleanup(cancel)
	ctx, cancel = chromedp.NewExecAllocator(ctx, options...)
	t.Cleanup(cancel)
	ctx, cancel = chromedp.NewContext(ctx)
	t.Cleanup(cancel)
	b := &browser{t: t, ctx: ctx}
	b.do("start the browser")
	if err := chromedp.Listen(ctx, b.note); err != nil {
		t.Fatal(err)
	}
	if _, err := chromedp.Call(ctx, log.Enable, cdp.Empty{}); err != nil {
		t.Fatal(err)
	}
	if _, err := chromedp.Call(ctx, network.Enable, network.EnableParams{}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		b.mu.Lock()
		defer b.mu.Unlock()
		for _, c := range b.complaints {
			t.Errorf("the browser complains: %s", c)
		}
		if err := chromedp.Cancel(ctx); err != nil {
			t.Errorf("end the browser: %v", err)
		}
	})
	return b
}

func (b *browser) note(event any) {
	b.mu.Lock()
	defer b.mu.Unlock()
	switch e := event.(type) {
	case *runtime.EventExceptionThrown:
		b.complaints = append(b.complaints, e.ExceptionDetails.Text)
	case *log.EventEntryAdded:
		// A stream that ends with its server is no fault of the page.
		if e.Entry.Level == log.EntryLevelError && e.Entry.Source != log.EntrySourceNetwork {
			b.complaints = append(b.complaints, e.Entry.Text)
		}
	case *network.EventRequestWillBeSent:
		b.requests = append(b.requests, e.Request.URL)
	}
}

func (b *browser) do(what string, actions ...chromedp.Action[chromedp.Void]) {
	b.t.Helper()
	if err := chromedp.Do(b.ctx, actions...); err != nil {
		b.t.Fatalf("%s: %v", what, err)
	}
}

// open goes to the page and waits until it is live.
func (b *browser) open(url string) {
	b.t.Helper()
	b.do("open the page", chromedp.Navigate(url), chromedp.WaitVisible(chromedp.CSS(`body[data-ready] #status[data-state=live]`)))
}

// is waits until a condition, a JavaScript expression, holds.
func (b *browser) is(what, condition string) {
	b.t.Helper()
	poll := chromedp.Poll[chromedp.Void](condition, chromedp.WithPollingTimeout(patience), chromedp.WithPollingInterval(20*time.Millisecond))
	if err := chromedp.Do(b.ctx, poll); err != nil {
		shown, _ := chromedp.Run(b.ctx, chromedp.Text(chromedp.CSS("body")))
		b.t.Fatalf("%s: not so: %v\nthe page shows:\n%s", what, err, shown)
	}
}

// shows waits until the elements of a selector hold text.
func (b *browser) shows(selector, text string) {
	b.t.Helper()
	b.is(fmt.Sprintf("%s shows %q", selector, text),
		fmt.Sprintf(`[...document.querySelectorAll(%q)].some((e) => e.textContent.includes(%q))`, selector, text))
}

// eval returns the value of a JavaScript expression.
func eval[T any](b *browser, expression string) T {
	b.t.Helper()
	out, err := chromedp.Run(b.ctx, chromedp.Evaluate[T](expression))
	if err != nil {
		b.t.Fatalf("evaluate %s: %v", expression, err)
	}
	return out
}

// write types text in a platform's panel and presses Enter.
func (b *browser) write(platform, text string) {
	b.t.Helper()
	field := chromedp.CSS("#" + platform + " textarea")
	b.do("write on "+platform, chromedp.WaitVisible(field), chromedp.SendKeys(field, text+kb.Enter))
}

func (b *browser) click(selector string) {
	b.t.Helper()
	b.do("click "+selector, chromedp.WaitVisible(chromedp.CSS(selector)), chromedp.Click(chromedp.CSS(selector)))
}

// speakAs chooses who speaks in a group.
func (b *browser) speakAs(platform string, who int) {
	b.t.Helper()
	eval[bool](b, fmt.Sprintf(`(() => { const list = document.querySelector("#%s select"); list.selectedIndex = %d; return list.dispatchEvent(new Event("change")); })()`, platform, who))
}

const (
	lineBot    = `#line .message[data-bot=true]`
	discordBot = `#discord .message[data-bot=true]`
	items      = `#items .item`
)

func TestPageShowsBothChatsAndWhatIsStored(t *testing.T) {
	t.Parallel()
	b := newBrowser(t)
	data := t.TempDir()
	first := start(t, demo.Options{Data: data, WordDelay: 10 * time.Millisecond})
	b.open(first.URL())

	b.write("line", "my name is Mika")
	b.shows("#line .message.mine", "my name is Mika")
	b.shows(lineBot, "Mika")
	b.is("both items of the turn are stored", `document.querySelectorAll("#items .item").length === 2`)
	b.shows(items+"[data-kind=user]", "my name is Mika")
	b.shows(items+"[data-kind=assistant]", "Mika")
	b.shows("#session-id", "line:user:U")

	b.write("discord", "what time is it in Tokyo?")
	b.shows(discordBot, "clock tool")
	b.is("the answer's bold text is bold", `document.querySelector("#discord .message[data-bot=true] strong") !== null`)
	b.shows("#session-id", "discord:user:")
	b.shows(items+"[data-kind=function_call]", "Asia/Tokyo")
	b.shows(items+"[data-kind=function_call_output]", "Asia/Tokyo")

	b.click("#tab-discord-room")
	b.write("discord", "remember the book is due on Friday")
	b.shows(discordBot, "Friday")
	b.shows("#discord .ping", "@botd")
	b.click("#tab-line-group")
	b.write("line", "remember the umbrella")
	b.shows(lineBot, "umbrella")
	b.shows("#session-id", "line:group:C")
	b.speakAs("line", 1)
	b.is("what Aiko said is now somebody else's", `document.querySelector("#line .message.theirs .name").textContent === "Aiko" && document.querySelector("#line .message.mine") === null`)
	b.speakAs("line", 0)

	b.click("#tab-line-direct")
	b.click("#line .reset")
	b.shows("#line .notice", "forgotten")
	b.is("nothing is stored after the reset", `document.querySelector("#items .empty") !== null && document.querySelector("#session-count").textContent.includes("reset once")`)
	b.write("line", "what is my name?")
	b.shows(lineBot, "not told me your name")

	b.checkRequests(first.URL())
	first.stop()
	b.shows("#status", "stopped")
	second := start(t, demo.Options{Data: data})
	b.open(second.URL())
	b.shows("#discord .welcome", "remembers 4 items")
	b.click("#tab-line-group")
	b.write("line", "what do you remember?")
	b.shows(lineBot, "umbrella")
	b.checkRequests(first.URL(), second.URL())
}

// checkRequests asserts that the page has asked nobody but the demonstration for anything.
func (b *browser) checkRequests(urls ...string) {
	b.t.Helper()
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, asked := range b.requests {
		if !slices.ContainsFunc(urls, func(url string) bool { return strings.HasPrefix(asked, url+"/") }) {
			b.t.Errorf("the page has asked for %s", asked)
		}
	}
}

// TestTextStaysText asserts that nothing that is said becomes part of the page.
func TestTextStaysText(t *testing.T) {
	t.Parallel()
	b := newBrowser(t)
	b.open(start(t, demo.Options{}).URL())
	const nasty = `<img src=x onerror="document.title='owned'"><script>document.title='owned'</script> [x](javascript:alert(1)) **<b>`
	for _, platform := range []string{"line", "discord"} {
		b.write(platform, nasty)
		b.shows("#"+platform+" .message:not([data-bot=true])", "<img src=x onerror=")
		b.shows("#"+platform+" .message[data-bot=true]", "You said")
		b.shows(items, "<img src=x onerror=")
	}
	if n := eval[int](b, `document.querySelectorAll(".log img, .log script, #items img, a[href^=javascript]").length`); n != 0 {
		t.Errorf("%d elements were made of what was said", n)
	}
	if title := eval[string](b, `document.title`); title != "botd demo" {
		t.Errorf("title %q: what was said has run", title)
	}
}

// TestKeyboardAndPhone asserts that the page can be used without a mouse and on a small screen.
func TestKeyboardAndPhone(t *testing.T) {
	t.Parallel()
	b := newBrowser(t)
	b.open(start(t, demo.Options{}).URL())

	b.do("choose a chat by the arrow keys", chromedp.Focus(chromedp.CSS("#tab-line-direct")), chromedp.KeyEvent(kb.ArrowRight))
	b.is("the group is chosen", `document.querySelector("#tab-line-group").getAttribute("aria-selected") === "true" && document.activeElement.id === "tab-line-group"`)
	b.do("write two lines", chromedp.Focus(chromedp.CSS("#line textarea")), chromedp.KeyEvent("one"), chromedp.KeyEvent(kb.Enter, chromedp.KeyModifiers(kb.ModifierShift)), chromedp.KeyEvent("two"))
	if text := eval[string](b, `document.querySelector("#line textarea").value`); text != "one\ntwo" {
		t.Errorf("Shift and Enter gave %q, want a new line", text)
	}
	unlabelled := eval[[]string](b, `[...document.querySelectorAll("button, input, select, textarea")]
		.filter((e) => !(e.getAttribute("aria-label") || e.textContent.trim() || e.labels?.length)).map((e) => e.outerHTML)`)
	if len(unlabelled) > 0 {
		t.Errorf("without a name: %q", unlabelled)
	}

	b.do("become a phone", chromedp.EmulateViewport(390, 844, chromedp.EmulateScale(2), chromedp.EmulateMobile))
	const visible = `[...document.querySelectorAll(".panel")].filter((e) => e.offsetParent !== null).map((e) => e.id).join()`
	for _, panel := range []string{"discord", "memory", "line"} {
		b.click(`.tabs [data-for=` + panel + `]`)
		if got := eval[string](b, visible); got != panel {
			t.Errorf("visible: %s, want %s alone", got, panel)
		}
		if wide := eval[int](b, `document.documentElement.scrollWidth`); wide > 390 {
			t.Errorf("%s: the page is %d pixels wide on a screen of 390", panel, wide)
		}
		if high := eval[int](b, `document.documentElement.scrollHeight`); high > 844 {
			t.Errorf("%s: the page is %d pixels high on a screen of 844", panel, high)
		}
	}
}

// TestEverythingFits asserts that on screens of all sizes nothing is cut off that can be pressed, and that
// the chats keep room for what is said.
func TestEverythingFits(t *testing.T) {
	t.Parallel()
	b := newBrowser(t)
	b.open(start(t, demo.Options{}).URL())
	b.is("the chats are there", `document.querySelectorAll(".hints button").length > 0`)
	for _, size := range []struct{ width, height, log int }{
		{1920, 1080, 600}, {1440, 860, 400}, {1100, 800, 350}, {1000, 700, 230}, {730, 900, 350}, {390, 844, 400}, {360, 640, 200},
	} {
		b.do("set the size", chromedp.EmulateViewport(int64(size.width), int64(size.height)))
		for _, tabs := range [][2]string{{"line-direct", "discord-direct"}, {"line-group", "discord-room"}} {
			for i, platform := range []string{"line", "discord"} {
				where := fmt.Sprintf("%s at %d×%d", tabs[i], size.width, size.height)
				eval[bool](b, fmt.Sprintf(`(document.querySelector(".tabs [data-for=%s]").click(), document.querySelector("#tab-%s").click(), true)`, platform, tabs[i]))
				for _, complaint := range eval[[]string](b, fmt.Sprintf(fitting, platform)) {
					t.Errorf("%s: %s", where, complaint)
				}
				if high := eval[int](b, fmt.Sprintf(`document.querySelector("#%s .log").clientHeight`, platform)); high < size.log {
					t.Errorf("%s: the log is %d pixels high, want %d", where, high, size.log)
				}
			}
		}
	}
}

// fitting returns what does not fit in a panel: boxes that hide some of what is in them, and buttons that
// reach into one another.
const fitting = `(() => {
	const panel = document.querySelector("#%s"), out = [];
	for (const box of [panel.querySelector("header"), ...panel.querySelectorAll("header button, .hints"), ...document.querySelectorAll(".facts, .facts li")])
		if (box.offsetParent && (box.scrollWidth > box.clientWidth || box.scrollHeight > box.clientHeight))
			out.push("cut off: " + (box.className || box.tagName) + " " + box.textContent + " " + [box.scrollWidth, box.clientWidth, box.scrollHeight, box.clientHeight]);
	const buttons = [...panel.querySelectorAll("header .brand, header button, .hints button")].filter((e) => e.offsetParent).map((e) => [e.textContent, e.getBoundingClientRect()]);
	for (const [text, a] of buttons)
		for (const [other, b] of buttons)
			if (text !== other && a.left < b.right && b.left < a.right && a.top < b.bottom && b.top < a.bottom) out.push(text + " lies on " + other);
	if (new Set([...panel.querySelectorAll(".hints button")].filter((e) => e.offsetParent).map((e) => e.offsetTop)).size > 2) out.push("more than two rows of suggestions");
	return out;
})()`

// TestThemes asserts that the button shows the moon by day and the sun by night.
func TestThemes(t *testing.T) {
	t.Parallel()
	b := newBrowser(t)
	b.open(start(t, demo.Options{}).URL())
	const shown = `[...document.querySelectorAll("#theme svg")].filter((e) => getComputedStyle(e).display !== "none").map((e) => e.classList[0]).join()`
	first := eval[string](b, shown)
	b.click("#theme")
	second := eval[string](b, shown)
	b.click("#theme")
	third := eval[string](b, shown)
	if first == second || first != third || first != "moon" && first != "sun" || second != "moon" && second != "sun" {
		t.Errorf("shown %s, then %s, then %s, want moon and sun by turns", first, second, third)
	}
}

// TestScreenshot takes the picture for the documentation.
func TestScreenshot(t *testing.T) {
	if *screenshot == "" {
		t.Skip("takes a picture only when -screenshot names a file")
	}
	b := newBrowser(t)
	b.do("set the size", chromedp.EmulateViewport(1440, 860))
	b.open(start(t, demo.Options{WordDelay: 5 * time.Millisecond}).URL())
	b.click("#tab-line-group")
	b.write("line", "remember the train to Kyoto leaves at 9:40")
	b.shows(lineBot, "9:40")
	b.speakAs("line", 1)
	b.click("#line input[name=mention]")
	b.write("line", "I bring the tickets")
	b.shows("#line .message.mine", "tickets")
	b.click("#line input[name=mention]")
	b.speakAs("line", 0)
	b.write("line", "what do you remember?")
	b.shows(lineBot, "I remember:")
	b.click("#tab-discord-direct")
	b.write("discord", "my name is Dana")
	b.shows(discordBot, "Nice to meet you")
	b.write("discord", "what time is it in Tokyo?")
	b.shows(discordBot, "clock tool")
	b.shows(items+"[data-kind=function_call_output]", "Asia/Tokyo")
	b.do("wait for the flash of new items to end", chromedp.Blur(chromedp.CSS("#discord textarea")), chromedp.Sleep(2*time.Second))
	picture, err := chromedp.Run(b.ctx, chromedp.CaptureScreenshot())
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(*screenshot, picture, 0o644); err != nil {
		t.Fatal(err)
	}
}
