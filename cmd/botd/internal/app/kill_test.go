package app_test

import (
	"bytes"
	"context"
	"fmt"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"botd/agent"
	"botd/channels/discord/discordfake"
	"botd/channels/dispatch"
	"botd/channels/line/linefake"
	"botd/cmd/botd/internal/app"
	"botd/cmd/botd/internal/obs"
	"botd/config"
	"botd/sessionstore/boltstore"
)

// childConfig is the variable that makes the test program a gateway with that configuration.
const childConfig = "BOTD_TEST_CHILD_CONFIG"

func TestMain(m *testing.M) {
	if path := os.Getenv(childConfig); path != "" {
		os.Exit(runChild(path))
	}
	if os.Getenv(childTools) != "" {
		os.Exit(runToolServer())
	}
	os.Exit(m.Run())
}

// runChild is the gateway that is killed: the real one, with a model that takes a moment.
func runChild(path string) int {
	cfg, problems := config.Load(path, config.Options{})
	if err := problems.Err(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 2
	}
	log, err := obs.NewLogger(obs.LogOptions{Writer: os.Stderr, Format: "text"})
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	g, err := app.New(cfg, app.Options{Logger: log, Models: map[string]agent.Model{"echo": echo(20 * time.Millisecond)}})
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	if err := g.Run(ctx); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}

// TestKilledAtAnyMomentEverythingIsAnsweredOnce kills the gateway with SIGKILL while messages are under
// way on both platforms, starts it again, and counts the answers. BOTD_KILL_ROUNDS sets the number of
// rounds, BOTD_KILL_SEED replays one seed.
func TestKilledAtAnyMomentEverythingIsAnsweredOnce(t *testing.T) {
	t.Parallel()
	rounds := 3
	if n, err := strconv.Atoi(os.Getenv("BOTD_KILL_ROUNDS")); err == nil {
		rounds = n
	}
	seed := rand.Uint64()
	if s, err := strconv.ParseUint(os.Getenv("BOTD_KILL_SEED"), 10, 64); err == nil {
		seed, rounds = s, 1
	}
	for round := range rounds {
		seed := seed + uint64(round)
		t.Run(fmt.Sprintf("seed=%d", seed), func(t *testing.T) {
			t.Parallel()
			k := newKilling(t, rand.New(rand.NewPCG(seed, 0)))
			k.round()
			if t.Failed() {
				t.Logf("replay with BOTD_KILL_SEED=%d; log of the gateway:\n%s", seed, k.log.String())
			}
		})
	}
}

// killing is one round.
type killing struct {
	*world
	t       *testing.T
	rnd     *rand.Rand
	addr    string
	config  string
	log     *logBuffer
	process *exec.Cmd
}

func newKilling(t *testing.T, rnd *rand.Rand) *killing {
	// A webhook that finds the gateway dead comes again, as with LINE's redelivery switched on.
	waits := make([]time.Duration, 100)
	for i := range waits {
		waits[i] = 100 * time.Millisecond
	}
	k := &killing{world: newWorld(t, linefake.BotConfig{Redeliver: waits}), t: t, rnd: rnd, log: &logBuffer{}}
	l, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	k.addr = l.Addr().String()
	l.Close()
	k.bot.SetWebhook("http://" + k.addr + "/webhook")
	k.config = filepath.Join(k.dir, "botd.yaml")
	writeFile(t, k.config, k.yaml(k.addr))
	t.Cleanup(func() {
		if k.process != nil {
			_ = k.process.Process.Kill()
			_ = k.process.Wait()
		}
	})
	return k
}

func (k *killing) startProcess() {
	k.t.Helper()
	k.process = exec.CommandContext(k.t.Context(), os.Args[0])
	k.process.Env = []string{childConfig + "=" + k.config, "SECRET=" + k.bot.Secret, "TOKEN=" + k.bot.Token, "DISCORD=" + plantedDiscordToken}
	k.process.Stderr = k.log
	if err := k.process.Start(); err != nil {
		k.t.Fatal(err)
	}
}

func (k *killing) awaitReady() {
	k.t.Helper()
	await(k.t, "the gateway to be ready", func() bool {
		req, err := http.NewRequestWithContext(k.t.Context(), http.MethodGet, "http://"+k.addr+"/readyz", nil)
		if err != nil {
			k.t.Fatal(err)
		}
		res, err := http.DefaultClient.Do(req)
		if err != nil {
			return false
		}
		defer res.Body.Close()
		var body bytes.Buffer
		_, err = body.ReadFrom(res.Body)
		return err == nil && strings.Contains(body.String(), `"status":"ready"`)
	})
}

func (k *killing) kill() {
	k.t.Helper()
	if err := k.process.Process.Kill(); err != nil {
		k.t.Fatal(err)
	}
	_ = k.process.Wait() // it ends by the signal
}

const (
	killPeople   = 5
	killMessages = 50 // on both platforms together
)

// round sends, kills, restarts, kills once more in half of the rounds, and counts.
func (k *killing) round() {
	t := k.t
	k.startProcess()
	k.awaitReady()

	var users []*linefake.User
	var chats []*linefake.Chat
	var people []discordfake.User
	var rooms []string
	for i := range killPeople {
		u := k.line.AddUser(linefake.UserConfig{Name: fmt.Sprintf("user %d", i)})
		users, chats = append(users, u), append(chats, k.bot.Direct(u))
		p := k.discord.Person(fmt.Sprintf("person%d", i))
		people, rooms = append(people, p), append(rooms, k.discord.DM(p.ID))
	}
	k.greet(people, rooms)
	killAfter := time.Duration(k.rnd.IntN(200)) * time.Millisecond
	killAgain := -time.Millisecond
	if k.rnd.IntN(2) == 0 {
		killAgain = time.Duration(k.rnd.IntN(150)) * time.Millisecond
	}

	// speak calls say for each message of one person, with a pause before each.
	var posting sync.WaitGroup
	speak := func(say func(n int)) {
		pauses := make([]time.Duration, killMessages/2/killPeople)
		for n := range pauses {
			pauses[n] = time.Duration(k.rnd.IntN(60)) * time.Millisecond
		}
		posting.Go(func() {
			for n, pause := range pauses {
				time.Sleep(pause)
				say(n)
			}
		})
	}
	for i := range killPeople {
		speak(func(n int) {
			chats[i].Say(t.Context(), users[i], fmt.Sprintf("message #line-%d-%d#", i, n))
		})
		speak(func(n int) {
			if _, err := k.discord.Say(discordfake.Saying{From: people[i].ID, Room: rooms[i], Text: fmt.Sprintf("message #discord-%d-%d#", i, n)}); err != nil {
				t.Errorf("say on Discord: %v", err)
			}
		})
	}
	time.Sleep(killAfter)
	k.kill()
	k.startProcess()
	if killAgain >= 0 {
		time.Sleep(killAgain)
		k.kill()
		k.startProcess()
	}
	posting.Wait()
	k.awaitReady()
	lineCounts, discordCounts := k.untilQuiet(chats, rooms)

	if err := k.process.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if err := k.process.Wait(); err != nil {
		t.Errorf("the gateway ended with %v", err)
	}
	k.process = nil
	k.judge(lineCounts, discordCounts)
}

// greet has everybody on Discord talk to the bot once, and waits until the gateway has noted how far it has
// read: Discord does not say again what a dead process has missed, so it has to be fetched from there on.
func (k *killing) greet(people []discordfake.User, rooms []string) {
	k.t.Helper()
	for i, p := range people {
		sayDiscord(k.t, k.world, p, rooms[i], "hello")
	}
	for _, room := range rooms {
		k.hearDiscord(k.t, room, 1)
	}
	await(k.t, "the read position to be saved", func() bool {
		text, err := os.ReadFile(filepath.Join(k.dir, "botd.db.discord.cursor"))
		return err == nil && bytes.Count(text, []byte(":")) > len(rooms)
	})
}

// untilQuiet waits until every message is answered, or nothing has changed for a while: a LINE reply
// whose outcome is unknown counts as said and may be missing.
func (k *killing) untilQuiet(chats []*linefake.Chat, rooms []string) (line, discord map[string]int) {
	k.t.Helper()
	const quiet = 2 * time.Second
	seen, changed := -1, time.Now()
	for time.Since(changed) < patience {
		var onLINE, onDiscord []string
		for _, c := range chats {
			onLINE = append(onLINE, lineTexts(c.Answers())...)
		}
		for _, r := range rooms {
			onDiscord = append(onDiscord, discordTexts(k.discord.BotPosts(r))...)
		}
		line, discord = tagsIn(onLINE...), tagsIn(onDiscord...)
		if n := len(line) + len(discord); n != seen {
			seen, changed = n, time.Now()
		}
		idle := time.Since(changed)
		if len(discord) == killMessages/2 && (len(line) == killMessages/2 && idle > quiet/4 || idle > quiet) {
			return line, discord
		}
		time.Sleep(10 * time.Millisecond)
	}
	return line, discord
}

// judge compares what was shown with what the journal says.
func (k *killing) judge(line, discord map[string]int) {
	t := k.t
	t.Helper()
	for i := range killPeople {
		for n := range killMessages / 2 / killPeople {
			if tag := fmt.Sprintf("#discord-%d-%d#", i, n); discord[tag] != 1 {
				t.Errorf("message %s was answered %d times", tag, discord[tag])
			}
			if tag := fmt.Sprintf("#line-%d-%d#", i, n); line[tag] > 1 {
				t.Errorf("message %s was answered %d times", tag, line[tag])
			}
		}
	}
	db, err := boltstore.Open(boltstore.Options{Path: filepath.Join(k.dir, "botd.db")})
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	stats, err := db.Stats(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if missing := killMessages/2 - len(line); missing > stats.Unknown {
		t.Errorf("%d messages on LINE have no answer, and only %d replies are of unknown outcome", missing, stats.Unknown)
	}
	if left := (dispatch.Stats{Pending: stats.Pending, Waiting: stats.Waiting, Held: stats.Held, Dead: stats.Dead, DeadEvents: stats.DeadEvents}); left != (dispatch.Stats{}) {
		t.Errorf("left in the journal: %+v", left)
	}
	t.Logf("%d of %d answered on LINE, %d replies of unknown outcome", len(line), killMessages/2, stats.Unknown)
}
