-- Wireshark dissector for XSTP and what bentpipe puts around it and into it.
--
--   IP protocol 253            XSTP, published header
--   UDP port 9721              XSTP, sealed header: what `bentpipe capture` writes
--   UDP port 7000 (a setting)  associations: sealed datagrams between two gateways
--   UDP, 24 zero octets        XSTP, sealed header: what the simulator's captures have
--
-- Use:      wireshark -X lua_script:bentpipe.lua FILE
-- Install:  copy it to the folder that Help > About > Folders calls "Personal Lua Plugins".
-- Layouts:  docs/spec/wire.md, docs/spec/relay.md section 1,
--           docs/spec/association.md sections 1, 2 and 7.

local xstp = Proto("xstp", "Satellite transport (XSTP)")
local published = Proto("xstp_published", "Satellite transport (XSTP), published header")
local relay = Proto("relay", "bentpipe relay")
local association = Proto("bentpipe", "bentpipe association")

association.prefs.ports = Pref.range("UDP ports", "7000", "Ports of hubs", 65535)
association.prefs.clear = Pref.bool("Payloads are in the clear", false,
  'Both gateways say security = "none": show the XSTP in the datagrams')

-- Fields ------------------------------------------------------------------------------------

local f = {}

-- Each protocol's fields are given to it whole, below.
local lists = { [xstp] = {}, [relay] = {}, [association] = {} }
local function field(proto, name, kind, label, ...)
  f[name] = ProtoField[kind](name, label, ...)
  table.insert(lists[proto], f[name])
end

local TYPES = { "SD", "POLL", "STAT", "USTAT", "BGN", "END", "AK", "RST" }
local SD, POLL, STAT, USTAT, BGN, END, AK, RST = 1, 2, 4, 8, 16, 32, 64, 128

field(xstp, "xstp.srcport", "uint16", "Source port")
field(xstp, "xstp.dstport", "uint16", "Destination port")
field(xstp, "xstp.type", "uint8", "Type", base.HEX)
for bit, name in ipairs(TYPES) do
  field(xstp, "xstp.type." .. name:lower(), "bool", name, 8, nil, 2 ^ (bit - 1))
end
field(xstp, "xstp.number", "uint24", "Number")
field(xstp, "xstp.window", "uint32", "Window")
field(xstp, "xstp.checksum", "uint16", "Checksum", base.HEX)
field(xstp, "xstp.timestamp", "uint32", "Timestamp")
field(xstp, "xstp.version", "uint8", "Version")
field(xstp, "xstp.delivery", "uint8", "Delivery", base.DEC,
  { [0] = "in order", [1] = "immediate" })
field(xstp, "xstp.max_segment", "uint16", "Largest segment")
field(xstp, "xstp.incarnation", "uint32", "Incarnation")
field(xstp, "xstp.begin.echo", "uint32", "Echoed stamp of BGN")
field(xstp, "xstp.stamp", "uint32", "Stamp")
field(xstp, "xstp.poll.count", "uint32", "POLL count")
field(xstp, "xstp.poll.ahead", "uint32", "Ahead of this packet")
field(xstp, "xstp.poll.next", "uint24", "Next new number, VT(S)")
field(xstp, "xstp.stat.flags", "uint8", "STAT flags", base.HEX)
field(xstp, "xstp.stat.below", "uint24", "All received below, N(R)")
field(xstp, "xstp.stat.echo_stamp", "uint32", "Echoed stamp")
field(xstp, "xstp.stat.echo_count", "uint32", "Echoed POLL count")
field(xstp, "xstp.stat.arrival", "uint32", "POLL's arrival, microseconds")
field(xstp, "xstp.stat.octets", "uint32", "Octets received by then")
field(xstp, "xstp.stat.poll", "framenum", "Answers the POLL in", base.NONE, frametype.REQUEST)
field(xstp, "xstp.stat.time", "double", "Time since that POLL, seconds")
field(xstp, "xstp.ustat.below", "uint24", "All received below, N(R)")
field(xstp, "xstp.list.skip", "uint32", "Numbers before the list")
field(xstp, "xstp.list.runs", "uint32", "Runs in the list")
field(xstp, "xstp.gap", "string", "Missing")
field(xstp, "xstp.gap.first", "uint24", "First missing number")
field(xstp, "xstp.gap.length", "uint32", "Missing numbers")
field(xstp, "xstp.received", "string", "Received")
field(xstp, "xstp.missing", "uint32", "Missing numbers in all")
field(xstp, "xstp.note", "bytes", "NOTE")
field(xstp, "xstp.data", "bytes", "Data")
field(xstp, "xstp.data.length", "uint32", "Data length")
field(xstp, "xstp.first_sent", "framenum", "Sent before in")

local FRAMES = {
  [1] = "ACCEPT", [2] = "RESET", [3] = "CREDIT", [4] = "SHARED", [7] = "GRANT", [8] = "NEED",
  [9] = "FAMILIES",
}
local FAMILY_REACH = { [0] = "none", [1] = "partial", [2] = "global", [3] = "reserved" }
local REASONS = {
  [0] = "aborted", [1] = "local", [2] = "timed out", [3] = "protocol",
  [64] = "refused", [65] = "connection refused", [66] = "host unreachable",
  [67] = "network unreachable", [68] = "connection timed out", [69] = "policy",
  [70] = "name not found", [71] = "limit", [72] = "opening not understood",
}

field(relay, "relay.frame", "string", "Frame")
field(relay, "relay.flags", "uint8", "Kind and flags", base.HEX)
field(relay, "relay.stream", "uint32", "Stream")
field(relay, "relay.by_hub", "bool", "Opened by the hub")
field(relay, "relay.open", "bool", "Opens the stream")
field(relay, "relay.end", "bool", "Ends the half")
field(relay, "relay.charged", "bool", "Uses shared credit")
field(relay, "relay.coded", "bool", "Compressed")
field(relay, "relay.offset", "uint32", "Offset, low bits")
field(relay, "relay.length", "uint32", "Length")
field(relay, "relay.data", "bytes", "Data")
field(relay, "relay.priority", "uint8", "Priority", base.DEC,
  { [0] = "interactive", [1] = "normal", [2] = "background" })
field(relay, "relay.target", "string", "Target")
field(relay, "relay.source", "string", "Client")
field(relay, "relay.final", "uint64", "Final offset")
field(relay, "relay.used", "uint64", "Shared credit used")
field(relay, "relay.reason", "uint8", "Reason", base.DEC, REASONS)
field(relay, "relay.credit", "uint64", "Credit, bytes")
field(relay, "relay.rate", "uint64", "Rate granted, bit/s")
field(relay, "relay.need", "uint64", "Bytes that wait")
field(relay, "relay.families", "uint64", "Address families, two bits each", base.HEX)
field(relay, "relay.opened", "uint64", "Streams opened in all")
field(relay, "relay.leaves", "bool", "No session follows")
field(relay, "relay.packet", "bytes", "IP packet")
field(relay, "relay.piece.number", "uint32", "Number of the packet in pieces")
field(relay, "relay.piece.total", "uint32", "Its length")

local KINDS = {
  [1] = "Hello", [2] = "Welcome", [3] = "Data", [4] = "Unknown", [5] = "Cookie",
  [6] = "Probe", [7] = "ProbeAck",
}
local SUITES = { [0] = "null", [1] = "noise" }

field(association, "bentpipe.version", "uint8", "Version", base.DEC, nil, 0xf0)
field(association, "bentpipe.kind", "uint8", "Kind", base.DEC, KINDS, 0x0f)
field(association, "bentpipe.index", "uint24", "Index of the receiver", base.HEX)
field(association, "bentpipe.counter", "uint32", "Counter, low 32 bits")
field(association, "bentpipe.suite", "uint8", "Suite", base.DEC, SUITES)
field(association, "bentpipe.capabilities", "uint8", "Capabilities", base.HEX)
field(association, "bentpipe.versions", "bytes", "Lowest and highest version")
field(association, "bentpipe.ephemeral", "bytes", "Ephemeral key")
field(association, "bentpipe.static", "bytes", "Static key, sealed")
field(association, "bentpipe.name", "string", "Terminal's name")
field(association, "bentpipe.mac1", "bytes", "First MAC")
field(association, "bentpipe.mac2", "bytes", "Second MAC")
field(association, "bentpipe.nonce", "bytes", "Nonce")
field(association, "bentpipe.payload", "bytes", "Sealed payload")
field(association, "bentpipe.probe", "uint32", "Number of the Probe")
field(association, "bentpipe.probe.size", "uint32", "Size of the Probe")
field(association, "bentpipe.tag", "bytes", "Tag")

local e = {
  malformed = ProtoExpert.new("xstp.malformed", "Malformed segment", expert.group.MALFORMED,
    expert.severity.ERROR),
  types = ProtoExpert.new("xstp.illegal_types", "Types that do not go together",
    expert.group.MALFORMED, expert.severity.ERROR),
  again = ProtoExpert.new("xstp.again", "Packet retransmitted", expert.group.SEQUENCE,
    expert.severity.NOTE),
  gaps = ProtoExpert.new("xstp.gaps", "Packets are missing", expert.group.SEQUENCE,
    expert.severity.CHAT),
  reset = ProtoExpert.new("xstp.reset", "Session reset", expert.group.SEQUENCE,
    expert.severity.WARN),
  frame = ProtoExpert.new("relay.malformed", "Malformed frame", expert.group.MALFORMED,
    expert.severity.ERROR),
  refused = ProtoExpert.new("relay.refused", "Stream cut off", expert.group.SEQUENCE,
    expert.severity.WARN),
  datagram = ProtoExpert.new("bentpipe.malformed", "Malformed datagram", expert.group.MALFORMED,
    expert.severity.ERROR),
}

xstp.fields = lists[xstp]
relay.fields = lists[relay]
association.fields = lists[association]
xstp.experts = { e.malformed, e.types, e.again, e.gaps, e.reset }
relay.experts = { e.frame, e.refused }
association.experts = { e.datagram }

-- Reading -----------------------------------------------------------------------------------

local HALF = 2 ^ 23
local FULL = 2 ^ 24
-- A list of thousands of gaps is shown in part.
local MOST_RUNS = 200

local Cursor = {}
Cursor.__index = Cursor

local function cursor(tvb, at)
  return setmetatable({ tvb = tvb, at = at or 0, stop = tvb:len() }, Cursor)
end

function Cursor:left()
  return self.stop - self.at
end

function Cursor:take(len, what)
  if len > self:left() then
    error({ message = what .. " goes past the end" }, 0)
  end
  local range = self.tvb:range(self.at, len)
  self.at = self.at + len
  return range
end

function Cursor:uint(len, what)
  local range = self:take(len, what)
  return range:uint(), range
end

-- Seven bits an octet, lowest first; `most` octets.
function Cursor:varint(what, most)
  local start, value, scale = self.at, 0, 1
  for _ = 1, most or 5 do
    local octet = self:uint(1, what)
    value = value + (octet % 128) * scale
    if octet < 128 then
      return value, self.tvb:range(start, self.at - start)
    end
    scale = scale * 128
  end
  error({ message = what .. " is no variable-length integer" }, 0)
end

-- Runs `read`; what it finds wrong becomes an expert info of `tree`.
local function guarded(tree, kind, read)
  local ok, problem = pcall(read)
  if ok then
    return true
  end
  local message = type(problem) == "table" and problem.message or tostring(problem)
  tree:add_proto_expert_info(kind, message)
  return false
end

local function u64(number)
  return UInt64.new(number % 2 ^ 32, math.floor(number / 2 ^ 32))
end

local function add_u64(tree, name, range, number)
  tree:add(f[name], range, u64(number))
end

-- What is remembered of a conversation: filled on the first pass through a file.
local memory = {}

function xstp.init()
  memory = {}
end

local function side(pinfo)
  local from = tostring(pinfo.src) .. ":" .. pinfo.src_port
  local to = tostring(pinfo.dst) .. ":" .. pinfo.dst_port
  local function of(key)
    memory[key] = memory[key] or { sent = {}, polls = {}, again = {}, answers = {} }
    return memory[key]
  end
  return of(from .. ">" .. to), of(to .. ">" .. from)
end

-- The relay's frames ------------------------------------------------------------------------

local function socket_address(c, kind, tree, name)
  local start = c.at
  local host
  if kind == 0 then
    host = tostring(c:take(4, "address"):ipv4())
  elseif kind == 1 then
    host = "[" .. tostring(c:take(16, "address"):ipv6()) .. "]"
  elseif kind == 2 then
    local len = c:uint(1, "name")
    host = c:take(len, "name"):string()
  else
    error({ message = "target of unknown kind " .. kind }, 0)
  end
  local port = c:uint(2, "port")
  local text = host .. ":" .. port
  tree:add(f[name], c.tvb:range(start, c.at - start), text)
  return text
end

local function opening(c, tree)
  tree:add(f["relay.priority"], c:take(1, "priority"))
  local kind = c:uint(1, "kind of target")
  local target = socket_address(c, kind % 16, tree, "relay.target")
  local source = math.floor(kind / 16)
  if source > 0 then
    socket_address(c, source - 1, tree, "relay.source")
  end
  return target
end

local function stream_frame(c, tree, flags, start)
  local function has(bit) return math.floor(flags / bit) % 2 == 1 end
  local number, range = c:varint("stream")
  tree:add(f["relay.stream"], range, number)
  tree:add(f["relay.by_hub"], c.tvb:range(start, 1), has(0x40))
  tree:add(f["relay.open"], c.tvb:range(start, 1), has(0x04))
  tree:add(f["relay.end"], c.tvb:range(start, 1), has(0x08))
  tree:add(f["relay.charged"], c.tvb:range(start, 1), has(0x02))
  tree:add(f["relay.coded"], c.tvb:range(start, 1), has(0x01))
  local words = string.format("STREAM %s%d", has(0x40) and "hub " or "", number)
  if has(0x04) then
    words = words .. " opens " .. opening(c, tree)
  else
    local offset, where = c:uint(has(0x10) and 4 or 3, "offset")
    tree:add(f["relay.offset"], where, offset)
    words = words .. " at " .. offset
  end
  local len = c:left()
  if has(0x20) then
    local where
    len, where = c:varint("length")
    tree:add(f["relay.length"], where, len)
  end
  local data = nil
  if len > 0 then
    data = c:take(len, "data")
    tree:add(f["relay.data"], data)
  end
  return words .. string.format(", %d bytes%s", len, has(0x08) and ", end" or "")
end

-- An IP packet that is carried as it is, or a piece of one.
local function packet_frame(c, tree, flags, pinfo)
  local is_piece = flags % 8 == 6
  local words = is_piece and "PIECE" or "DATAGRAM"
  if is_piece then
    local number, range = c:varint("number")
    tree:add(f["relay.piece.number"], range, number)
    local total
    total, range = c:varint("total")
    tree:add(f["relay.piece.total"], range, total)
    local offset
    offset, range = c:varint("offset")
    tree:add(f["relay.offset"], range, offset)
    words = string.format("PIECE of %d at %d of %d", number, offset, total)
  end
  local len = c:left()
  if flags >= 0x20 then
    local range
    len, range = c:varint("length")
    tree:add(f["relay.length"], range, len)
  end
  if len == 0 then
    error({ message = words .. " without a packet" }, 0)
  end
  local packet = c:take(len, "packet")
  tree:add(f["relay.packet"], packet)
  if not is_piece then
    local version = math.floor(packet:range(0, 1):uint() / 16)
    pcall(Dissector.call, Dissector.get(version == 6 and "ipv6" or "ip"), packet:tvb(), pinfo, tree)
  end
  return words .. string.format(", %d bytes", len)
end

local function control_frame(c, tree, flags, start)
  local kind, by_hub = flags % 64, flags >= 0x40
  local name = FRAMES[kind]
  if not name then
    error({ message = string.format("frame of unknown kind 0x%02x", flags) }, 0)
  end
  local words = name
  if kind == 7 or kind == 8 then
    local number = c:varint("number", 9)
    local value, where = c:varint(name, 9)
    if kind == 7 then
      add_u64(tree, "relay.rate", where, value * 1000)
      return string.format("GRANT %d: %d kbit/s", number, value)
    end
    add_u64(tree, "relay.need", where, value * 1024)
    return string.format("NEED %d: %d bytes", number, value * 1024)
  end
  if kind == 9 then
    local number = c:varint("number", 9)
    local value, where = c:varint("families", 9)
    add_u64(tree, "relay.families", where, value)
    return string.format("FAMILIES %d: IPv4 %s, IPv6 %s", number, FAMILY_REACH[value % 4],
      FAMILY_REACH[math.floor(value / 4) % 4])
  end
  if kind ~= 4 then
    local number, range = c:varint("stream")
    tree:add(f["relay.stream"], range, number)
    tree:add(f["relay.by_hub"], c.tvb:range(start, 1), by_hub)
    words = words .. " " .. (by_hub and "hub " or "") .. number
  end
  if kind == 2 then
    local final, where = c:varint("final offset", 9)
    add_u64(tree, "relay.final", where, final)
    local used
    used, where = c:varint("shared credit", 9)
    add_u64(tree, "relay.used", where, used)
    local reason
    reason, where = c:uint(1, "reason")
    tree:add(f["relay.reason"], where)
    words = words .. ", " .. (REASONS[reason] or reason)
    tree:add_proto_expert_info(e.refused, words)
  elseif kind == 3 or kind == 4 then
    local credit, where = c:varint("credit", 9)
    add_u64(tree, "relay.credit", where, credit * 1024)
    words = words .. string.format(" %d bytes", credit * 1024)
  end
  return words
end

-- A frame with a length, which a receiver that does not know it skips.
local function extension_frame(c, tree, flags)
  local len, range = c:varint("length")
  tree:add(f["relay.length"], range, len)
  if flags ~= 0x10 then
    tree:add(f["relay.data"], c:take(len, "content"))
    if flags == 0x11 then
      return string.format("PADDING, %d bytes", len)
    elseif flags == 0x12 then
      return string.format("REPORT, %d bytes", len)
    elseif flags == 0x13 then
      return string.format("RECEIVED, %d bytes", len)
    elseif flags == 0x14 then
      return string.format("DEFINE, %d bytes", len)
    elseif flags == 0x15 then
      return string.format("COMPRESSED, %d bytes", len)
    elseif flags == 0x16 then
      return string.format("CONTEXTS, %d bytes", len)
    elseif flags == 0x17 then
      return string.format("INVALID, %d bytes", len)
    end
    return string.format("unknown frame 0x%02x, %d bytes", flags, len)
  end
  local after = c.at + len
  local opened, where = c:varint("streams opened", 9)
  add_u64(tree, "relay.opened", where, opened)
  local leaves = false
  if c.at < after then
    local bits
    bits, where = c:uint(1, "flags")
    leaves = bits % 2 == 1
    tree:add(f["relay.leaves"], where, leaves)
  end
  if c.at < after then
    c:take(after - c.at, "content")
  end
  return string.format("GOAWAY, %d streams opened%s", opened, leaves and ", no session follows" or "")
end

-- What the frames of a packet say, in words.
local function relay_frames(tvb, pinfo, tree)
  local c = cursor(tvb)
  local words = {}
  while c:left() > 0 do
    local start = c.at
    local branch = tree:add(relay, tvb:range(start))
    local ok = guarded(branch, e.frame, function()
      local flags, range = c:uint(1, "frame")
      branch:add(f["relay.flags"], range)
      local said
      if flags >= 0x80 then
        said = stream_frame(c, branch, flags, start)
      elseif flags >= 0x10 and flags < 0x20 then
        said = extension_frame(c, branch, flags)
      elseif flags < 0x40 and (flags % 32 == 5 or flags % 32 == 6) then
        said = packet_frame(c, branch, flags, pinfo)
      else
        said = control_frame(c, branch, flags, start)
      end
      branch:set_text("Relay: " .. said)
      branch:set_len(c.at - start)
      branch:add(f["relay.frame"], tvb:range(start, c.at - start), said):set_generated()
      table.insert(words, said)
    end)
    if not ok then
      break
    end
  end
  return words
end

function relay.dissector(tvb, pinfo, tree)
  relay_frames(tvb, pinfo, tree)
  return tvb:len()
end

local function note(c, tree)
  local len = c:varint("NOTE")
  if len == 0 then
    return
  end
  local range = c:take(len, "NOTE")
  local branch = tree:add(f["xstp.note"], range)
  guarded(branch, e.frame, function()
    local inner = cursor(range:tvb())
    while inner:left() > 0 do
      local start = inner.at
      local key = inner:varint("note", 9)
      local value = inner:varint("note", 9)
      local where = inner.tvb:range(start, inner.at - start)
      local whose = "shared credit returned"
      if key > 0 then
        local by_hub = (key - 1) % 2 == 1
        local number = math.floor((key - 1) / 2)
        whose = string.format("limit of stream %s%d", by_hub and "hub " or "", number)
      end
      branch:add(f["relay.credit"], where, u64(value * 1024)):append_text(" (" .. whose .. ")")
    end
  end)
end

-- XSTP --------------------------------------------------------------------------------------

local function is_legal(bits)
  local traffic, control = bits % 16, bits - bits % 16
  if control == 0 then return traffic ~= 0 end
  if control == BGN then return traffic < 4 end
  if control == AK then return traffic == 0 end
  if control == BGN + AK then return true end
  if control == END or control == END + AK then return traffic == 0 or traffic == STAT end
  return control == RST and traffic == 0
end

-- The simulator's captures have zeros where an association's octets would be.
local function is_simulated(tvb)
  if tvb:len() < 28 then
    return false
  end
  for at = 0, 20, 4 do
    if tvb:range(at, 4):uint() ~= 0 then
      return false
    end
  end
  return is_legal(tvb:range(24, 1):uint())
end

-- What the simulator sends is bytes of an application, not a relay's frames.
local in_simulation = false

local function simulated(tvb, pinfo, tree)
  in_simulation = true
  xstp.dissector(tvb:range(24):tvb(), pinfo, tree)
  in_simulation = false
end

local function names(bits)
  local found = {}
  for bit, name in ipairs(TYPES) do
    if math.floor(bits / 2 ^ (bit - 1)) % 2 == 1 then
      table.insert(found, name)
    end
  end
  return table.concat(found, "+")
end

-- Adds runs that alternate, beginning with a missing one; `each` gives the next length.
local function runs(tree, range, first, count, each, between)
  local at, missing, gaps, all = first, true, {}, 0
  for index = 1, count do
    local length, where = each()
    if length == 0 then
      error({ message = "a run of no numbers" }, 0)
    end
    local text = string.format("%d to %d (%d)", at, (at + length - 1) % FULL, length)
    if missing then
      all = all + length
      table.insert(gaps, { at, length })
    end
    if index <= MOST_RUNS then
      if missing then
        local branch = tree:add(f["xstp.gap"], where or range, text)
        branch:add(f["xstp.gap.first"], where or range, at)
        branch:add(f["xstp.gap.length"], where or range, length)
      elseif between then
        tree:add(f["xstp.received"], where or range, text)
      end
    elseif index == MOST_RUNS + 1 then
      tree:append_text(", of which the first " .. MOST_RUNS .. " are shown")
    end
    at, missing = (at + length) % FULL, not missing
  end
  if all > 0 then
    tree:add(f["xstp.missing"], range, all):set_generated()
  end
  return all
end

local function sealed_list(c, tree, first, between)
  local count, where = c:varint("number of runs")
  tree:add(f["xstp.list.runs"], where, count)
  return runs(tree, where, first, count, function() return c:varint("run") end, between)
end

local function published_list(c, tree, boundaries, between)
  if boundaries == 0 then
    return 0
  end
  local at, where = c:uint(3, "boundary")
  local function each()
    local next, range = c:uint(3, "boundary")
    local length = (next - at) % FULL
    at = next
    return length, range
  end
  return runs(tree, where, at, boundaries - 1, each, between)
end

local function control_part(c, tree, bits, is_sealed, words)
  local function has(bit) return math.floor(bits / bit) % 2 == 1 end
  if has(BGN) then
    local branch = tree:add(xstp, c.tvb:range(c.at), has(AK) and "BGNAK" or "BGN")
    local delivery = 0
    if is_sealed then
      branch:add(f["xstp.version"], c:take(1, "version"))
      local where
      delivery, where = c:uint(1, "delivery")
      branch:add(f["xstp.delivery"], where)
      branch:add(f["xstp.max_segment"], c:take(2, "largest segment"))
      branch:add(f["xstp.incarnation"], c:take(4, "incarnation"))
      local window
      window, where = c:varint("window")
      branch:add(f["xstp.window"], where, window)
    else
      local incarnation, where = c:uint(1, "incarnation")
      branch:add(f["xstp.incarnation"], where, incarnation)
      branch:add(f["xstp.max_segment"], c:take(2, "largest segment"))
    end
    if has(AK) then
      branch:add(f["xstp.begin.echo"], c:take(4, "echo"))
    end
    return delivery
  elseif has(END) or has(RST) then
    local incarnation, where = c:uint(is_sealed and 4 or 1, "incarnation")
    tree:add(f["xstp.incarnation"], where, incarnation)
    if has(RST) then
      tree:add_proto_expert_info(e.reset)
    end
  end
end

local function poll_part(c, tree, bits, number, header, pinfo, us)
  local branch = tree:add(xstp, c.tvb:range(math.min(c.at, c.tvb:len())), "POLL")
  local with_data, count = bits % 2 == 1, nil
  local next_number = number
  if header then
    count = header.timestamp
    branch:add(f["xstp.poll.count"], header.range, count)
    if with_data then
      local where
      next_number, where = c:uint(3, "VT(S)")
      branch:add(f["xstp.poll.next"], where)
    end
  else
    local where
    count, where = c:varint("POLL count")
    branch:add(f["xstp.poll.count"], where, count)
    if with_data then
      local ahead
      ahead, where = c:varint("ahead")
      branch:add(f["xstp.poll.ahead"], where, ahead)
      next_number = (number + 1 + ahead) % FULL
    end
    branch:add(f["xstp.poll.next"], next_number):set_generated()
  end
  if not pinfo.visited then
    us.polls[count] = { pinfo.number, pinfo.abs_ts }
  end
  return string.format("POLL %d", count)
end

local function stat_part(c, tree, header, pinfo, them, us)
  local branch = tree:add(xstp, c.tvb:range(c.at), "STAT")
  local below, echo, missing, where
  if header then
    local boundaries = c:uint(1, "boundaries")
    below, where = c:uint(3, "N(R)")
    branch:add(f["xstp.stat.below"], where)
    echo, where = c:uint(4, "echo")
    branch:add(f["xstp.stat.echo_count"], where)
    missing = published_list(c, branch, boundaries, true)
  else
    local flags
    flags, where = c:uint(1, "flags")
    branch:add(f["xstp.stat.flags"], where)
    if flags > 3 then
      error({ message = string.format("STAT flags 0x%02x", flags) }, 0)
    end
    below, where = c:uint(3, "N(R)")
    branch:add(f["xstp.stat.below"], where)
    branch:add(f["xstp.stat.echo_stamp"], c:take(4, "echoed stamp"))
    echo, where = c:varint("echoed count")
    branch:add(f["xstp.stat.echo_count"], where, echo)
    local window
    window, where = c:varint("window")
    branch:add(f["xstp.window"], where, window)
    if flags % 2 == 1 then
      branch:add(f["xstp.stat.arrival"], c:take(4, "arrival"))
      branch:add(f["xstp.stat.octets"], c:take(4, "octets"))
    end
    local skip = 0
    if flags >= 2 then
      skip, where = c:varint("skip")
      branch:add(f["xstp.list.skip"], where, skip)
    end
    missing = sealed_list(c, branch, (below + skip) % FULL, true)
  end
  if not pinfo.visited and them.polls[echo] then
    us.answers[pinfo.number] = { them.polls[echo][1], pinfo.abs_ts - them.polls[echo][2] }
  end
  local answer = us.answers[pinfo.number]
  if answer then
    branch:add(f["xstp.stat.poll"], answer[1]):set_generated()
    branch:add(f["xstp.stat.time"], answer[2]):set_generated()
  end
  if missing > 0 then
    branch:add_proto_expert_info(e.gaps, missing .. " missing")
  end
  return string.format("STAT %d <%d%s", echo, below, missing > 0 and " missing " .. missing or "")
end

local function ustat_part(c, tree, header)
  local branch = tree:add(xstp, c.tvb:range(c.at), "USTAT")
  local missing
  if header then
    local boundaries = c:uint(1, "boundaries")
    branch:add(f["xstp.ustat.below"], c:take(3, "N(R)"))
    missing = published_list(c, branch, boundaries, false)
  else
    local below, where = c:uint(3, "N(R)")
    branch:add(f["xstp.ustat.below"], where)
    local skip
    skip, where = c:varint("skip")
    branch:add(f["xstp.list.skip"], where, skip)
    missing = sealed_list(c, branch, (below + skip) % FULL, false)
  end
  branch:add_proto_expert_info(e.gaps, missing .. " missing")
  return "USTAT missing " .. missing
end

-- A packet that was sent under this number before, in this session.
local function is_retransmission(pinfo, tree, us, number)
  if not pinfo.visited then
    local before = us.sent[number]
    if before then
      us.again[pinfo.number] = before
    else
      us.sent[number] = pinfo.number
    end
    -- Sequence numbers wrap: entries that are half the number space behind are removed.
    us.sent[(number + HALF) % FULL] = nil
  end
  local before = us.again[pinfo.number]
  if before then
    tree:add(f["xstp.first_sent"], before):set_generated()
    tree:add_proto_expert_info(e.again)
  end
  return before ~= nil
end

local function data_part(c, tree, pinfo, number, us, is_relay, words)
  local retransmitted = is_retransmission(pinfo, tree, us, number)
  tree:add(f["xstp.data.length"], c:left()):set_generated()
  table.insert(words, 1, string.format("SD %d%s", number, retransmitted and " retransmission" or ""))
  if c:left() == 0 then
    return
  end
  local data = c:take(c:left(), "data")
  if is_relay then
    for _, said in ipairs(relay_frames(data:tvb(), pinfo, tree)) do
      table.insert(words, said)
    end
  else
    tree:add(f["xstp.data"], data)
  end
end

local function parts(c, tree, pinfo, bits, number, header, words)
  local function has(bit) return math.floor(bits / bit) % 2 == 1 end
  local us, them = side(pinfo)
  if bits == AK then
    local count = c:uint(1, "packets covered") + 1
    c:uint(1, "key")
    tree:add(f["xstp.data"], c:take(c:left(), "repair symbol"))
    table.insert(words, string.format("REPAIR %d+%d", number, count))
    return
  end
  local delivery = control_part(c, tree, bits, not header, words)
  if has(BGN) then
    if not pinfo.visited then
      us.delivery, us.sent, us.polls = delivery, {}, {}
    end
    table.insert(words, has(AK) and "BGNAK" or "BGN")
  elseif has(END) then
    table.insert(words, has(AK) and "ENDAK" or "END")
  elseif has(RST) then
    table.insert(words, "RST")
  end
  if not header and (has(POLL) or bits - bits % 16 == BGN) then
    tree:add(f["xstp.stamp"], c:take(4, "stamp"))
  end
  if has(POLL) then
    table.insert(words, poll_part(c, tree, bits, number, header, pinfo, us))
  end
  if has(STAT) then
    table.insert(words, stat_part(c, tree, header, pinfo, them, us))
  end
  if has(USTAT) then
    table.insert(words, ustat_part(c, tree, header))
  end
  if not header and (has(POLL) or has(STAT)) then
    note(c, tree)
  end
  if has(SD) then
    -- A session in order carries bytes; one in immediate delivery a relay's frames.
    local is_relay = not header and not in_simulation and us.delivery ~= 0 and them.delivery ~= 0
    data_part(c, tree, pinfo, number, us, is_relay, words)
  elseif c:left() > 0 then
    error({ message = c:left() .. " octets too many" }, 0)
  end
end

local function type_part(c, tree)
  local bits, range = c:uint(1, "type")
  local branch = tree:add(f["xstp.type"], range)
  branch:append_text(" (" .. names(bits) .. ")")
  for _, name in ipairs(TYPES) do
    branch:add(f["xstp.type." .. name:lower()], range)
  end
  if not is_legal(bits) then
    branch:add_proto_expert_info(e.types)
    return nil
  end
  return bits
end

local function finish(pinfo, branch, words)
  local text = table.concat(words, ", ")
  pinfo.cols.protocol = "XSTP"
  pinfo.cols.info = text
  branch:append_text(": " .. text)
end

function xstp.dissector(tvb, pinfo, tree)
  local branch = tree:add(xstp, tvb())
  local words = {}
  guarded(branch, e.malformed, function()
    local c = cursor(tvb)
    local bits = type_part(c, branch)
    if not bits then
      return
    end
    local number, range = c:uint(3, "number")
    branch:add(f["xstp.number"], range)
    parts(c, branch, pinfo, bits, number, nil, words)
  end)
  finish(pinfo, branch, words)
  return tvb:len()
end

function published.dissector(tvb, pinfo, tree)
  local branch = tree:add(xstp, tvb())
  local words = {}
  guarded(branch, e.malformed, function()
    local c = cursor(tvb)
    local from, range = c:uint(2, "source port")
    branch:add(f["xstp.srcport"], range)
    local to
    to, range = c:uint(2, "destination port")
    branch:add(f["xstp.dstport"], range)
    pinfo.src_port, pinfo.dst_port = from, to
    local bits = type_part(c, branch)
    if not bits then
      return
    end
    local number
    number, range = c:uint(3, "number")
    branch:add(f["xstp.number"], range)
    branch:add(f["xstp.window"], c:take(2, "window"))
    branch:add(f["xstp.checksum"], c:take(2, "checksum"))
    local timestamp
    timestamp, range = c:uint(4, "timestamp")
    branch:add(f["xstp.timestamp"], range)
    parts(c, branch, pinfo, bits, number, { timestamp = timestamp, range = range }, words)
  end)
  finish(pinfo, branch, words)
  return tvb:len()
end

-- Associations ------------------------------------------------------------------------------

local function hello(c, tree, suite)
  tree:add(f["bentpipe.ephemeral"], c:take(32, "ephemeral"))
  tree:add(f["bentpipe.static"], c:take(48, "static"))
  tree:add(f["bentpipe.payload"], c:take(40, "payload"))
  if suite == 0 then
    local len = c:uint(1, "name")
    tree:add(f["bentpipe.name"], c:take(len, "name"))
    tree:add(f["bentpipe.tag"], c:take(16, "tag"))
  else
    tree:add(f["bentpipe.tag"], c:take(16, "tag"))
    tree:add(f["bentpipe.mac1"], c:take(16, "first MAC"))
    tree:add(f["bentpipe.mac2"], c:take(16, "second MAC"))
  end
end

local function sealed_datagram(c, tree, pinfo, root, kind)
  local len = c:left() - 16
  if len < 0 then
    error({ message = "shorter than its tag" }, 0)
  end
  if len > 0 then
    local payload = c:take(len, "payload")
    if kind == 3 and association.prefs.clear then
      xstp.dissector(payload:tvb(), pinfo, root)
    elseif (kind == 6 or kind == 7) and len >= 4 and association.prefs.clear then
      tree:add(f["bentpipe.probe"], payload:range(0, 4))
      if kind == 7 and len >= 8 then
        tree:add(f["bentpipe.probe.size"], payload:range(4, 4))
      end
    else
      tree:add(f["bentpipe.payload"], payload)
    end
  end
  tree:add(f["bentpipe.tag"], c:take(16, "tag"))
end

function association.dissector(tvb, pinfo, tree)
  if is_simulated(tvb) then
    simulated(tvb, pinfo, tree)
    return tvb:len()
  end
  local branch = tree:add(association, tvb())
  pinfo.cols.protocol = "BENTPIPE"
  guarded(branch, e.datagram, function()
    local c = cursor(tvb)
    local first, range = c:uint(1, "header")
    branch:add(f["bentpipe.version"], range)
    branch:add(f["bentpipe.kind"], range)
    local kind = first % 16
    local name = KINDS[kind] or ("kind " .. kind)
    local index = c:uint(3, "index")
    branch:add(f["bentpipe.index"], tvb:range(1, 3))
    local text = string.format("%s, to %06x", name, index)
    local suite
    if kind == 1 or kind == 2 or kind == 5 then
      suite, range = c:uint(1, "suite")
      branch:add(f["bentpipe.suite"], range)
      local octets = c:take(3, "header")
      if kind == 1 then
        branch:add(f["bentpipe.capabilities"], octets:range(0, 1))
      end
    else
      local counter
      counter, range = c:uint(4, "counter")
      branch:add(f["bentpipe.counter"], range)
      text = text .. ", counter " .. counter
    end
    pinfo.cols.info = string.format("%s, %d bytes", text, tvb:len())
    branch:append_text(": " .. text)
    if first == 0 and tvb:len() == 26 then
      pinfo.cols.info = "Version"
      branch:add(f["bentpipe.versions"], c:take(2, "versions"))
      branch:add(f["bentpipe.tag"], c:take(16, "tag"))
      return
    end
    if math.floor(first / 16) ~= 1 then
      error({ message = "version " .. math.floor(first / 16) }, 0)
    end
    if kind == 1 then
      hello(c, branch, suite)
    elseif kind == 2 then
      branch:add(f["bentpipe.ephemeral"], c:take(32, "ephemeral"))
      branch:add(f["bentpipe.payload"], c:take(44, "payload"))
      branch:add(f["bentpipe.tag"], c:take(16, "tag"))
    elseif kind == 5 then
      branch:add(f["bentpipe.nonce"], c:take(12, "nonce"))
      branch:add(f["bentpipe.payload"], c:take(16, "cookie"))
      branch:add(f["bentpipe.tag"], c:take(16, "tag"))
    elseif KINDS[kind] then
      sealed_datagram(c, branch, pinfo, tree, kind)
    else
      error({ message = "unknown kind " .. kind }, 0)
    end
    if c:left() > 0 then
      error({ message = c:left() .. " octets too many" }, 0)
    end
  end)
  return tvb:len()
end

-- Finding them ------------------------------------------------------------------------------

-- A Hello or a Welcome tells the port of a hub that is not where hubs usually are.
local function is_handshake(tvb)
  if tvb:len() < 100 then
    return false
  end
  local first, suite = tvb:range(0, 1):uint(), tvb:range(4, 1):uint()
  if suite > 1 or tvb:range(6, 2):uint() ~= 0 then
    return false
  end
  if first == 0x12 then
    return tvb:len() == 100
  end
  if first ~= 0x11 then
    return false
  end
  if suite ~= 0 then
    return tvb:len() == 176
  end
  return tvb:len() >= 145 and tvb:len() == 145 + tvb:range(128, 1):uint()
end

local function guess(tvb, pinfo, tree)
  if is_simulated(tvb) then
    simulated(tvb, pinfo, tree)
    return true
  end
  if is_handshake(tvb) then
    pinfo.conversation = association
    association.dissector(tvb, pinfo, tree)
    return true
  end
  return false
end

association:register_heuristic("udp", guess)
DissectorTable.get("ip.proto"):add(253, published)
local udp = DissectorTable.get("udp.port")
udp:add(9721, xstp)
udp:add(association.prefs.ports, association)

local ports = association.prefs.ports
function association.prefs_changed()
  if ports ~= association.prefs.ports then
    udp:remove(ports, association)
    ports = association.prefs.ports
    udp:add(ports, association)
  end
end
