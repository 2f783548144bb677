package config

import "time"

// Config is the whole configuration. The struct tags are the schema: yaml names the key, default its
// default, enum its values, min and max its range; a field with a when tag is a section whose keys stand
// beside its siblings' when the type is that.
type Config struct {
	// Store is where conversations and the journal of unanswered messages are kept, as a URL:
	// bbolt:///absolute/path, bbolt://./relative/path (to the working directory) or "memory:" (in quotes; nothing
	// survives a restart).
	Store string `yaml:"store" default:"bbolt://./data/botd.db"`
	// Server is the HTTP listener for webhooks and health checks.
	Server Server `yaml:"server"`
	// Admin is how operators reach the running gateway.
	Admin Admin `yaml:"admin"`
	// Providers are the model providers, by a name of your choice that agents refer to.
	Providers map[string]Provider `yaml:"providers"`
	// MCP are servers of tools (Model Context Protocol), by a name of at most 32 characters: agents are given
	// their tools as mcp.<name> or mcp.<name>.<tool>.
	MCP map[string]MCPServer `yaml:"mcp"`
	// Agents are the assistants, by name.
	Agents map[string]Agent `yaml:"agents"`
	// Channels are the bot accounts on chat platforms, by name. The name is part of stored session IDs:
	// renaming a channel makes its conversations start anew.
	Channels map[string]Channel `yaml:"channels"`
	// Session says how conversations are told apart and how much of them a model sees.
	Session Session `yaml:"session"`
	// Usage says what models cost and how much may be spent.
	Usage Usage `yaml:"usage"`
	// Log is the program's own log.
	Log Log `yaml:"log"`
	// Metrics are the figures for Prometheus.
	Metrics Metrics `yaml:"metrics"`
	// Limits bound the work that goes on at once.
	Limits Limits `yaml:"limits"`
}

// Server is the HTTP listener.
type Server struct {
	// Listen is the host:port to listen on; an empty host means every interface.
	Listen string `yaml:"listen" default:":8080"`
	// PublicURL is the https:// address under which platforms reach this listener, without a path. It is
	// used to tell you which webhook URL to register.
	PublicURL string `yaml:"public_url"`
}

// Admin is how operators reach the running gateway.
type Admin struct {
	// Socket is the path of the Unix socket of the admin API, which botd session and its like speak; only
	// the gateway's own user and root can use it. By default it lies beside the store's file, with .sock
	// appended to its name; off means none.
	Socket string `yaml:"socket"`
}

// ProviderType is the kind of a model provider.
type ProviderType string

// The kinds of providers.
const (
	// OpenAI speaks the OpenAI API, as most hosted and local model servers do.
	OpenAI ProviderType = "openai"
	// Offline is the built-in model that needs no network; it is for trying things out.
	Offline ProviderType = "offline"
)

// Provider is one model provider.
type Provider struct {
	// Type is the kind of provider.
	Type ProviderType `yaml:"type" enum:"openai,offline" default:"openai"`
	// OpenAI are the keys of type openai.
	OpenAI *OpenAIProvider `when:"openai"`
}

// OpenAIBaseURL is the address of the OpenAI API itself.
const OpenAIBaseURL = "https://api.openai.com/v1"

// OpenAIProvider is a server that speaks the OpenAI API.
type OpenAIProvider struct {
	// APIKey is the key; needed for OpenAI and Azure, optional for servers that ask for none.
	APIKey Secret `yaml:"api_key"`
	// BaseURL is the API's address, the part before /responses or /chat/completions.
	BaseURL string `yaml:"base_url" default:"https://api.openai.com/v1"`
	// API is the API to speak: responses, chat (Chat Completions), or auto, which finds out.
	API string `yaml:"api" enum:"auto,responses,chat" default:"auto"`
	// Dialect says which fields the server understands: openai, azure or generic. The default is told
	// from base_url.
	Dialect string `yaml:"dialect" enum:"openai,azure,generic"`
	// Headers are added to every request, by name.
	Headers map[string]Secret `yaml:"headers" free:"true"`
	// Models tell what the program cannot find out about models, by the server's own name of each.
	Models map[string]Model `yaml:"models" names:"any"`
}

// Model is what is known of one model.
type Model struct {
	// Window is how many tokens the model takes at once, the answer included; 0: unknown. A conversation is
	// then kept below it, which matters most for local servers, as many of them cut what is too long without
	// a word.
	Window int `yaml:"window" min:"0" max:"100000000" default:"0"`
}

// MCPServer is one server of tools: a command that is started, or a URL. While it is dead its tools are
// missing, and nothing else is.
type MCPServer struct {
	// Command is the program to start, which speaks MCP on its standard input and output.
	Command string `yaml:"command"`
	// Args are the arguments of the command. Other users of the machine can see them: secrets belong in env.
	Args []string `yaml:"args"`
	// Env are variables for the command, by name. Of the program's own environment it gets only PATH, HOME,
	// USER, LANG, LC_ALL, TZ, TMPDIR, SSL_CERT_FILE and SSL_CERT_DIR.
	Env map[string]Secret `yaml:"env" free:"true"`
	// Dir is the folder where the command runs; this program's own when left out.
	Dir string `yaml:"dir"`
	// URL is the address of a server that speaks streamable HTTP. Secrets belong in headers.
	URL string `yaml:"url"`
	// Headers are added to every request to the URL, by name.
	Headers map[string]Secret `yaml:"headers" free:"true"`
	// Tools are the tools of the server that may be used at all, by its own names; all when left out.
	Tools []string `yaml:"tools"`
}

// Agent is one assistant.
type Agent struct {
	// Instructions tell the model who it is and what to do.
	Instructions string `yaml:"instructions" file:"instructions_file" default:"You are a helpful assistant in a chat. Answer briefly, in the language of the person who asks."`
	// Description tells other agents what this one is for; needed where handoffs or consults name it.
	Description string `yaml:"description"`
	// Models are the models to ask, as provider/model; the next is asked when one fails.
	Models []string `yaml:"models" required:"[provider/model]"`
	// Tools are the tools the agent may use: built-in ones by name, mcp.<name> for all tools of an MCP server,
	// mcp.<name>.<tool> for one.
	Tools []string `yaml:"tools"`
	// Handoffs are the agents to whom this one can hand the conversation over; they see all of it and answer
	// from there on.
	Handoffs []string `yaml:"handoffs"`
	// Consults are the agents that this one can ask as if they were tools; they see only the question.
	Consults []string `yaml:"consults"`
	// Guards refuse messages and answers.
	Guards Guards `yaml:"guards"`
	// Temperature is the sampling temperature; the model's own default when absent.
	Temperature *float64 `yaml:"temperature" min:"0" max:"2"`
	// MaxOutputTokens bounds one answer, in tokens; 0 leaves it to the provider.
	MaxOutputTokens int `yaml:"max_output_tokens" min:"0" max:"1000000" default:"0"`
	// MaxTurns bounds how often the model is asked for one answer, tool calls included.
	MaxTurns int `yaml:"max_turns" min:"1" max:"100" default:"10"`
}

// Guards refuse, before a model sees it or before a person sees it, what must go no further. Patterns are
// regular expressions as Go's regexp package reads them; (?i) at the beginning ignores case. They stop slips,
// not people who look for a way around them.
type Guards struct {
	// MaxInputChars refuses what people write when it has more characters; 0 sets no bound. Input is judged
	// by the guards of the agent with which the turn begins.
	MaxInputChars int `yaml:"max_input_chars" min:"0" max:"1000000" default:"0"`
	// BlockInput are patterns; what people write is refused when one of them is found in it.
	BlockInput []string `yaml:"block_input"`
	// BlockOutput are patterns; an answer is replaced by the refusal when one of them is found in it. It is
	// then not shown while it is written.
	BlockOutput []string `yaml:"block_output"`
	// Refusal is said instead of what a guard blocks.
	Refusal string `yaml:"refusal" default:"Sorry, I cannot help with that."`
}

// ChannelType is the kind of a channel.
type ChannelType string

// The kinds of channels.
const (
	// LINE is a LINE Official Account.
	LINE ChannelType = "line"
	// Discord is a Discord bot.
	Discord ChannelType = "discord"
	// Console is a chat over loopback HTTP.
	Console ChannelType = "console"
)

// Groups says which messages of a room with several people the bot answers.
type Groups string

// The group rules.
const (
	// GroupsMention answers what speaks to the bot.
	GroupsMention Groups = "mention"
	// GroupsAll answers everything that anybody says.
	GroupsAll Groups = "all"
	// GroupsIgnore answers nothing.
	GroupsIgnore Groups = "ignore"
)

// MidRun says what becomes of a message that comes while the bot answers.
type MidRun string

// The policies.
const (
	// MidRunQueue answers it afterwards.
	MidRunQueue MidRun = "queue"
	// MidRunInterrupt begins again and answers both together.
	MidRunInterrupt MidRun = "interrupt"
)

// Scope says who shares one memory.
type Scope string

// The scopes.
const (
	// ScopeDefault is per person in a direct chat and a public room, per group in a private group and
	// per thread in a thread.
	ScopeDefault Scope = "default"
	// ScopeUser is one memory for each person, wherever they write.
	ScopeUser Scope = "user"
	// ScopeRoom is one memory for each room.
	ScopeRoom Scope = "room"
	// ScopeUserInRoom is one memory for each person in each room.
	ScopeUserInRoom Scope = "user_in_room"
	// ScopeThread is one memory for each thread.
	ScopeThread Scope = "thread"
)

// Channel is one bot account on a platform.
type Channel struct {
	// Type is the platform.
	Type ChannelType `yaml:"type" enum:"line,discord,console" required:"true"`
	// Agent is the agent that answers; may be left out when there is only one.
	Agent string `yaml:"agent"`
	// Groups says which messages to answer where several people are present: mention (those that speak
	// to the bot), all, or ignore.
	Groups Groups `yaml:"groups" enum:"mention,all,ignore" default:"mention"`
	// Session overrides the top-level session section for this channel.
	Session ChannelSession `yaml:"session"`
	// Usage overrides the bounds of the top-level usage section for this channel.
	Usage ChannelUsage `yaml:"usage"`
	// MergeWindow is how long to wait for more messages of the same person, to answer them together; 0s
	// answers each message by itself.
	MergeWindow time.Duration `yaml:"merge_window" min:"0s" max:"30s" default:"0s"`
	// MidRun says what becomes of a message while an earlier one of the same person is being answered: queue
	// answers it afterwards, interrupt begins again and answers both together.
	MidRun MidRun `yaml:"mid_run" enum:"queue,interrupt" default:"queue"`
	// Admins are the platform's IDs of people who may reset or undo a memory that several people share, beside
	// those whom the platform reports to be in charge there.
	Admins []string `yaml:"admins"`
	// LINE are the keys of type line.
	LINE *LINEChannel `when:"line"`
	// Discord are the keys of type discord.
	Discord *DiscordChannel `when:"discord"`
	// Console are the keys of type console.
	Console *ConsoleChannel `when:"console"`
}

// ChannelSession is the session section of one channel.
type ChannelSession struct {
	// Scope overrides session.scope.
	Scope Scope `yaml:"scope" enum:"default,user,room,user_in_room,thread"`
}

// LINEChannel are the keys of a LINE Official Account.
type LINEChannel struct {
	// ChannelSecret verifies webhooks (LINE Developers Console, Basic settings).
	ChannelSecret Secret `yaml:"channel_secret" required:"true"`
	// ChannelAccessToken is a long-lived token that sends messages (LINE Developers Console, Messaging API).
	ChannelAccessToken Secret `yaml:"channel_access_token" required:"true" instead:"channel_id"`
	// ChannelID takes the place of channel_access_token: with it and the secret, the program gets itself tokens
	// of 15 minutes, so that nothing has to be issued or renewed by hand (LINE Developers Console, Basic
	// settings).
	ChannelID string `yaml:"channel_id"`
	// WebhookPath is the path of the webhook URL. Channels may share one: events are told apart by the
	// account they are meant for.
	WebhookPath string `yaml:"webhook_path" default:"/webhook/<channel name>"`
	// APIBase and DataAPIBase replace the addresses of LINE's API, for tests.
	APIBase     string `yaml:"api_base" default:"https://api.line.me"`
	DataAPIBase string `yaml:"data_api_base" default:"https://api-data.line.me"`
}

// DiscordChannel are the keys of a Discord bot.
type DiscordChannel struct {
	// Token is the bot token (Discord Developer Portal, Bot).
	Token Secret `yaml:"token" required:"true"`
	// MessageContent asks Discord for the text of messages that do not mention the bot; needs the
	// Message Content Intent in the Developer Portal.
	MessageContent bool `yaml:"message_content" default:"false"`
	// APIBase replaces the address of Discord's API, for tests.
	APIBase string `yaml:"api_base" default:"https://discord.com"`
}

// ConsoleChannel are the keys of a chat over loopback HTTP.
type ConsoleChannel struct {
	// Listen is the loopback host:port to listen on; there is no authentication.
	Listen string `yaml:"listen" default:"127.0.0.1:8081"`
}

// Session says how conversations are told apart and how much of them a model sees.
type Session struct {
	// Scope says who shares one memory: default (per person in direct chats and public rooms, per group
	// in private groups, per thread in threads), user, room, user_in_room or thread.
	Scope Scope `yaml:"scope" enum:"default,user,room,user_in_room,thread" default:"default"`
	// History bounds what a model is shown.
	History History `yaml:"history"`
}

// History bounds what a model is shown of a conversation; what is stored is not cut.
type History struct {
	// MaxItems is how many of the newest items are shown.
	MaxItems int `yaml:"max_items" min:"1" max:"10000" default:"200"`
	// MaxTokens is how many tokens of the newest turns are shown, by an estimate that is usually right within
	// a fifth.
	MaxTokens int `yaml:"max_tokens" min:"100" max:"10000000" default:"32000"`
	// Compact sums up older turns by one more request to the model, when a conversation outgrows max_tokens or
	// comes near max_items, instead of leaving them out. The summary becomes part of the conversation.
	Compact bool `yaml:"compact" default:"false"`
}

// Log is the program's own log, written to standard error.
type Log struct {
	// Level is the least severe level that is logged.
	Level string `yaml:"level" enum:"debug,info,warn,error" default:"info"`
	// Format is json, text, or auto: text on a terminal, json otherwise.
	Format string `yaml:"format" enum:"auto,json,text" default:"auto"`
}

// Limits bound the work that goes on at once.
type Limits struct {
	// MaxConcurrentTurns is how many answers are worked on at the same time; further ones wait.
	MaxConcurrentTurns int `yaml:"max_concurrent_turns" min:"1" max:"10000" default:"64"`
	// TurnTimeout is how long one answer may take.
	TurnTimeout time.Duration `yaml:"turn_timeout" min:"1s" max:"1h" default:"3m"`
	// Grace is how long running answers may take to finish when the program is asked to stop; what is
	// not finished is answered after the next start.
	Grace time.Duration `yaml:"grace" min:"0s" max:"10m" default:"20s"`
}
