package redisstore

import (
	_ "embed"

	"github.com/redis/go-redis/v9"
)

//go:embed scripts/common.lua
var commonLua string

//go:embed scripts/append.lua
var appendLua string

//go:embed scripts/pop.lua
var popLua string

//go:embed scripts/clear.lua
var clearLua string

//go:embed scripts/items.lua
var itemsLua string

//go:embed scripts/info.lua
var infoLua string

// scripts are the operations on one session. Their keys are those of keys.list.
type scripts struct{ append, pop, clear, items, info *redis.Script }

func newScripts() scripts {
	return scripts{
		append: redis.NewScript(commonLua + appendLua),
		pop:    redis.NewScript(commonLua + popLua),
		clear:  redis.NewScript(commonLua + clearLua),
		items:  redis.NewScript(commonLua + itemsLua),
		info:   redis.NewScript(commonLua + infoLua),
	}
}
