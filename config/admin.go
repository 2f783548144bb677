package config

// AdminOff as admin.socket means that there is no admin socket.
const AdminOff = "off"

// maxSocketPath is the longest path of a Unix socket that every system takes, in bytes.
const maxSocketPath = 103

// AdminSocket returns the path of the admin socket, empty when there is none. By default it lies beside
// the store's file, so that two gateways on one machine do not meet; a store without a file has none.
func (c *Config) AdminSocket() string {
	switch c.Admin.Socket {
	case AdminOff:
		return ""
	case "":
	default:
		return c.Admin.Socket
	}
	path, err := BoltPath(c.Store)
	if err != nil || len(path+socketSuffix) > maxSocketPath {
		return ""
	}
	return path + socketSuffix
}

const socketSuffix = ".sock"

// adminSocket checks that the socket can be made.
func (v *validator) adminSocket() {
	const remedy = "set admin.socket to a shorter path, such as /run/botd/admin.sock, or to off"
	switch path, err := BoltPath(v.cfg.Store); {
	case len(v.cfg.Admin.Socket) > maxSocketPath:
		v.problem("admin.socket", remedy, "admin.socket is %d bytes long, and a socket's path may have %d", len(v.cfg.Admin.Socket), maxSocketPath)
	case v.cfg.Admin.Socket == "" && err == nil && len(path+socketSuffix) > maxSocketPath:
		v.warning("store", remedy, "there will be no admin socket: beside the store its path would be too long")
	}
}
