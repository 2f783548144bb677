package discordfake

import (
	"encoding/json"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"
)

func (s *Server) getGateway(*call) (any, error) { return map[string]any{"url": s.gatewayURL()}, nil }

func (s *Server) getGatewayBot(*call) (any, error) {
	s.hub.renew()
	return map[string]any{"url": s.gatewayURL(), "shards": 1, "session_start_limit": map[string]any{
		"total": identifyTotal, "remaining": max(0, s.hub.left), "reset_after": max(0, time.Until(s.hub.resetAt).Milliseconds()), "max_concurrency": 1,
	}}, nil
}

func (s *Server) getApplication(*call) (any, error) {
	flags := s.appFlags()
	return map[string]any{
		"id": s.world.appID, "name": s.world.bot.Username, "icon": nil, "description": "", "type": nil, "verify_key": "",
		"flags": flags, "flags_new": strconv.Itoa(flags), "bot": s.world.bot, "owner": s.world.bot, "team": nil,
		"redirect_uris": []string{}, "interactions_endpoint_url": nil, "role_connections_verification_url": nil,
		"approximate_guild_count": len(s.world.guilds), "approximate_user_install_count": 0, "approximate_user_authorization_count": 0,
		"explicit_content_filter": 0, "eligible_oauth2_scopes": []string{},
	}, nil
}

func (s *Server) getRoom(c *call) (any, error) {
	r, err := s.visible(c.args["channel"])
	if err != nil {
		return nil, err
	}
	return r.json, nil
}

func (s *Server) postTyping(c *call) (any, error) {
	r, err := s.visible(c.args["channel"])
	if err != nil {
		return nil, err
	}
	if err := r.maySpeak(s); err != nil {
		return nil, err
	}
	r.typing = time.Now()
	s.changed(Typing, r.json.ID, nil)
	return nil, nil
}

func (s *Server) createDM(c *call) (any, error) {
	var b struct {
		RecipientID string `json:"recipient_id"`
	}
	if err := c.decode(&b); err != nil {
		return nil, err
	}
	u := s.world.users[b.RecipientID]
	if u == nil {
		return nil, badForm("recipient_id", "INVALID_USER", "Unknown User")
	}
	if u.user.Bot {
		return nil, refused(http.StatusBadRequest, 50007, "Cannot send messages to this user")
	}
	return s.openDM(b.RecipientID).json, nil
}

// createThread starts a thread from a message, whose ID it takes, or without one.
func (s *Server) createThread(c *call) (any, error) {
	r, err := s.visible(c.args["channel"])
	if err != nil {
		return nil, err
	}
	var b struct {
		Name        string `json:"name"`
		AutoArchive int    `json:"auto_archive_duration"`
		Type        *int   `json:"type"`
	}
	if err := c.decode(&b); err != nil {
		return nil, err
	}
	if n := utf8.RuneCountInString(strings.TrimSpace(b.Name)); n < 1 || n > 100 {
		return nil, badForm("name", "BASE_TYPE_BAD_LENGTH", "Must be between 1 and 100 in length.")
	}
	if b.AutoArchive != 0 && !slices.Contains([]int{60, 1440, 4320, 10080}, b.AutoArchive) {
		return nil, badForm("auto_archive_duration", "BASE_TYPE_CHOICES", "Value must be one of (60, 1440, 4320, 10080).")
	}
	if r.json.GuildID == "" || r.json.thread() != nil {
		return nil, refused(http.StatusBadRequest, 50024, "Cannot execute action on this channel type")
	}
	if r.denied&CreateThreads != 0 {
		return nil, refused(http.StatusForbidden, 50013, "Missing Permissions")
	}
	id := c.args["message"]
	if id == "" {
		id = s.newID()
		t := s.addThread(id, r, b.Name, s.world.bot.ID)
		if b.Type == nil {
			// Without a message the type "defaults to" a private thread.
			t.json.Type = 12
		} else {
			t.json.Type = *b.Type
		}
		return t.json, nil
	}
	if p := r.byID[id]; p == nil || p.Deleted {
		return nil, refused(http.StatusNotFound, 10008, "Unknown Message")
	}
	if s.world.rooms[id] != nil {
		return nil, refused(http.StatusBadRequest, 160004, "A thread has already been created for this message")
	}
	return s.addThread(id, r, b.Name, s.world.bot.ID).json, nil
}

func (s *Server) getCommands(c *call) (any, error) {
	if c.args["application"] != s.world.appID {
		return nil, refused(http.StatusForbidden, 20012, "You are not authorized to perform this action on this application")
	}
	if s.rest.commands == nil {
		return []json.RawMessage{}, nil
	}
	if c.q("with_localizations") == "true" {
		return s.rest.commands, nil
	}
	plain := make([]json.RawMessage, len(s.rest.commands))
	for i, raw := range s.rest.commands {
		plain[i] = merge(raw, map[string]any{"name_localizations": nil, "description_localizations": nil})
	}
	return plain, nil
}

// overwriteCommands replaces all global commands.
func (s *Server) overwriteCommands(c *call) (any, error) {
	if c.args["application"] != s.world.appID {
		return nil, refused(http.StatusForbidden, 20012, "You are not authorized to perform this action on this application")
	}
	var list []map[string]any
	if err := c.decode(&list); err != nil {
		return nil, err
	}
	if len(list) > 130 {
		return nil, refused(http.StatusBadRequest, 30032, "Maximum number of application commands reached (100).")
	}
	names := map[string]bool{}
	stored := []json.RawMessage{}
	for _, cmd := range list {
		name, _ := cmd["name"].(string)
		if n := utf8.RuneCountInString(name); n < 1 || n > 32 || name != strings.ToLower(name) || strings.ContainsAny(name, " /") {
			return nil, badForm("name", "APPLICATION_COMMAND_INVALID_NAME", "Command name is invalid")
		}
		if d, _ := cmd["description"].(string); d == "" || utf8.RuneCountInString(d) > 100 {
			return nil, badForm("description", "BASE_TYPE_BAD_LENGTH", "Must be between 1 and 100 in length.")
		}
		if names[name] {
			return nil, badForm("name", "APPLICATION_COMMANDS_DUPLICATE_NAME", "Application command names must be unique")
		}
		names[name] = true
		full := map[string]any{
			"id": s.newID(), "application_id": s.world.appID, "version": s.newID(), "type": 1, "nsfw": false,
			"default_member_permissions": nil, "name_localizations": nil, "description_localizations": nil,
			"contexts": nil, "integration_types": []int{0}, "dm_permission": true,
		}
		maps.Copy(full, cmd)
		stored = append(stored, mustJSON(full))
	}
	s.rest.commands = stored
	s.rest.overwrites++
	return stored, nil
}

// Commands returns the names of the registered commands, and how often the list was overwritten.
func (s *Server) Commands() (names []string, overwrites int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, raw := range s.rest.commands {
		var c struct {
			Name string `json:"name"`
		}
		if json.Unmarshal(raw, &c) == nil {
			names = append(names, c.Name)
		}
	}
	return names, s.rest.overwrites
}
