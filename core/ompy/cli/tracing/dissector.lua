-- A dissector of what ompy's ranks send each other, for Wireshark and tshark.
--
-- `ompy trace --dissector` has written it, from the declarations by which the code itself packs its
-- headers: the table FORMATS below. It reads the files of `ompy trace --pcapng`, whose interfaces
-- say which protocol a packet is of.
--
--   tshark -X lua_script:ompy.lua -r job.pcapng
--   or: put it into Wireshark's folder of personal Lua plugins

local FORMATS = @FORMATS@

local ompy = Proto("ompy", "ompy message passing")
local types = {
  u8 = ftypes.UINT8, u16 = ftypes.UINT16, u32 = ftypes.UINT32, u64 = ftypes.UINT64,
  i8 = ftypes.INT8, i16 = ftypes.INT16, i32 = ftypes.INT32, i64 = ftypes.INT64,
}
local all_fields = {}

local function declared(field)
  table.insert(all_fields, field)
  return field
end

local function bytes_field(name, abbreviation)
  return declared(ProtoField.bytes("ompy." .. abbreviation, name))
end

local protocol_field = declared(ProtoField.string("ompy.protocol", "protocol"))
local data_field = bytes_field("data", "data")
local sealed_field = bytes_field("encrypted", "encrypted")
local short_expert = ProtoExpert.new(
  "ompy.short", "shorter than its header", expert.group.MALFORMED, expert.severity.ERROR)
ompy.experts = { short_expert }

local function declare_layout(name, layout)
  for _, field in ipairs(layout.fields) do
    local abbreviation = "ompy." .. name .. "." .. field.name
    local kind = types[field.type]
    if kind == nil then
      field.proto = bytes_field(field.name, name .. "." .. field.name)
    else
      local shown = field.hex and base.HEX or base.DEC
      field.proto = declared(
        ProtoField.new(field.name, abbreviation, kind, field.values, shown))
      for _, part in ipairs(field.bits or {}) do
        part.proto = declared(
          ProtoField.new(part.name, abbreviation .. "." .. part.name, kind, nil, base.DEC, part.mask))
      end
    end
  end
end

for name, layout in pairs(FORMATS.layouts) do
  declare_layout(name, layout)
end
for _, name in ipairs(FORMATS.blobs) do
  FORMATS.blobs[name] = bytes_field(name, name)
end
ompy.fields = all_fields

local interface_name = Field.new("frame.interface_name")
local tcp_stream = Field.new("tcp.stream")
local tcp_sequence = Field.new("tcp.seq_raw")

local function value_of(range, kind)
  if kind == "u64" then
    return range:le_uint64():tonumber()
  elseif kind == "i64" then
    return range:le_int64():tonumber()
  elseif string.sub(kind, 1, 1) == "i" then
    return range:le_int()
  end
  return range:le_uint()
end

local function masked(value, mask)
  local found, bit = 0, 1
  while mask > 0 and value > 0 do
    if mask % 2 == 1 and value % 2 == 1 then
      found = found + bit
    end
    value, mask, bit = math.floor(value / 2), math.floor(mask / 2), bit * 2
  end
  return found
end

-- A walk: where we are in a packet (`at`), how far it was captured (`stop`), where it ends (`full`)

local function new_walk(tvb, full, tree, names)
  return {
    tvb = tvb, at = 0, stop = math.min(tvb:len(), full), full = full,
    tree = tree, values = {}, names = names,
  }
end

local function give_up(walk, what)
  if walk.stop < walk.full then
    walk.tree:add(ompy, walk.tvb(walk.at, walk.stop - walk.at), what .. " (not kept whole)")
  else
    local rest = walk.tvb(walk.at, walk.stop - walk.at)
    walk.tree:add(ompy, rest, what .. " (too short)"):add_proto_expert_info(short_expert)
  end
  walk.at = walk.full
end

local actions = {}

local function walk_steps(walk, steps)
  for _, step in ipairs(steps) do
    if walk.at >= walk.full then
      return
    end
    actions[step.op](walk, step)
  end
end

function actions.show(walk, step)
  local layout = FORMATS.layouts[step.layout]
  if walk.at + layout.size > walk.stop then
    give_up(walk, step.layout)
    return
  end
  local branch = walk.tree:add(ompy, walk.tvb(walk.at, layout.size), step.layout)
  if layout.info then
    table.insert(walk.names, layout.info)
  end
  for _, field in ipairs(layout.fields) do
    local range = walk.tvb(walk.at + field.offset, field.size)
    local item = branch:add_le(field.proto, range)
    if types[field.type] ~= nil then
      local value = value_of(range, field.type)
      walk.values[step.layout .. "." .. field.name] = value
      for _, part in ipairs(field.bits or {}) do
        item:add_le(part.proto, range)
      end
      if field.label and field.values[value] then
        branch:append_text(": " .. field.values[value])
        table.insert(walk.names, field.values[value])
      end
    end
  end
  walk.at = walk.at + layout.size
end

function actions.switch(walk, step)
  local value = walk.values[step.on]
  if step.peek then
    local place = walk.at + step.peek
    value = place < walk.stop and walk.tvb(place, 1):uint() or nil
  end
  if value ~= nil and step.mask then
    value = masked(value, step.mask)
  end
  walk_steps(walk, value ~= nil and step.cases[value] or step.other)
end

function actions.sized(walk, step)
  walk_steps(walk, step.cases[walk.full - walk.at] or step.other)
end

function actions.within(walk, step)
  local start, stop, full = walk.at, walk.stop, walk.full
  local size = walk.values[step.size]
  walk.full = math.min(full, start + size)
  walk.stop = math.min(stop, walk.full)
  walk_steps(walk, step.steps)
  walk.stop, walk.full = stop, full
  walk.at = math.min(full, start + (step.room and walk.values[step.room] or size))
end

actions["repeat"] = function(walk, step)
  while walk.at < walk.full do
    local before = walk.at
    walk_steps(walk, step.steps)
    if walk.at == before then
      return
    end
  end
end

local function show_bytes(walk, field, size)
  local there = math.min(size, walk.stop - walk.at)
  if there > 0 then
    walk.tree:add(field, walk.tvb(walk.at, there))
  end
  walk.at = math.min(walk.full, walk.at + size)
end

function actions.blob(walk, step)
  show_bytes(walk, FORMATS.blobs[step.name], step.bytes or walk.values[step.size])
end

function actions.payload(walk)
  show_bytes(walk, data_field, walk.full - walk.at)
end

function actions.tagged(walk, step)
  walk_steps(walk, FORMATS.tags[walk.values[step.on]] or { { op = "payload" } })
end

function actions.through(walk, step)
  local sign = FORMATS.signs[step.protocol]
  if sign then
    local place = walk.at + sign.at
    if place >= walk.stop or not sign.values[walk.tvb(place, 1):uint()] then
      return actions.payload(walk)
    end
  end
  walk_steps(walk, FORMATS.packets[step.protocol] or { { op = "payload" } })
end

-- Which protocol: the interface says it

local function protocol_of()
  local found = interface_name()
  return found and string.match(tostring(found), "rank %d+ (%S+)$")
end

local function begin_tree(tvb, pinfo, tree, protocol)
  pinfo.cols.protocol = protocol
  local branch = tree:add(ompy, tvb(), "ompy " .. protocol)
  branch:add(protocol_field, protocol)
  return branch
end

local function end_info(pinfo, names)
  if #names > 0 then
    pinfo.cols.info:set(table.concat(names, " "))
    pinfo.cols.info:fence()
  end
end

local function steps_of_packet(protocol)
  if FORMATS.packets[protocol] then
    return FORMATS.packets[protocol]
  end
  for prefix, steps in pairs(FORMATS.prefixes) do
    if string.sub(protocol, 1, #prefix) == prefix then
      return steps
    end
  end
  return nil
end

local function dissect_datagram(tvb, pinfo, tree)
  local protocol = protocol_of()
  local steps = protocol and steps_of_packet(protocol)
  if not steps then
    return false
  end
  local names = {}
  local branch = begin_tree(tvb, pinfo, tree, protocol)
  walk_steps(new_walk(tvb, tvb:reported_len(), branch, names), steps)
  end_info(pinfo, names)
  return true
end

-- Connections. Their bytes are put together here, once, in the order of the file; what is complete
-- with a packet is kept by the packet's number and shown with it.

local conversations = {}
local found_in = {}

function ompy.init()
  conversations, found_in = {}, {}
end

local function number_at(bytes, offset, size)
  local value = 0
  for place = offset + size - 1, offset, -1 do
    value = value * 256 + bytes:get_index(place)
  end
  return value
end

local function drop(bytes, count)
  local left = bytes:len() - count
  return left > 0 and bytes:subset(count, left) or ByteArray.new()
end

local function keep(items, kind, bytes, full, steps)
  table.insert(items, { kind = kind, bytes = bytes, full = full or bytes:len(), steps = steps })
end

local function take_units(side, items)
  local unit, steps = side.unit, side.steps
  while true do
    if side.skip > 0 then
      local count = math.min(side.skip, side.plain:len())
      side.plain, side.skip = drop(side.plain, count), side.skip - count
    end
    if side.skip > 0 or side.plain:len() < unit.header then
      return
    end
    local kind = number_at(side.plain, unit.kind.offset, unit.kind.size)
    local body = number_at(side.plain, unit.size.offset, unit.size.size)
    if unit.bare[kind] then
      body = 0
    elseif unit.doubled[kind] then
      body = 2 * body
    end
    local wanted = unit.header + math.min(body, unit.heads[kind] or body)
    if side.plain:len() < wanted then
      return
    end
    keep(items, "unit", side.plain:subset(0, wanted), unit.header + body, steps)
    side.plain, side.skip = drop(side.plain, wanted), unit.header + body - wanted
  end
end

local function take_record(side, items, level)
  local head, tag = FORMATS.record.head, FORMATS.record.tag
  if side.stream:len() < head then
    return false
  end
  local length = number_at(side.stream, 0, 4)
  local whole = head + length + tag
  if side.stream:len() < whole then
    return false
  end
  keep(items, level == 1 and "record" or "encrypted", side.stream:subset(0, whole))
  if level == 1 and length > 0 then
    side.plain = side.plain .. side.stream:subset(head, length)
  end
  side.stream = drop(side.stream, whole)
  return true
end

local function take_handshake(side, items, conversation)
  local step = side.handshake[1]
  if side.stream:len() < step.size then
    return false
  end
  if step.layout == "handshake.hello" then
    conversation.level = side.stream:get_index(FORMATS.seal_at)
  end
  keep(items, "handshake", side.stream:subset(0, step.size), nil,
    { { op = "show", layout = step.layout } })
  side.stream = drop(side.stream, step.size)
  table.remove(side.handshake, 1)
  return true
end

local function take_all(side, items, conversation)
  while #side.handshake > 0 do
    if not take_handshake(side, items, conversation) then
      return
    end
  end
  if conversation.level == 0 then
    side.plain, side.stream = side.plain .. side.stream, ByteArray.new()
  else
    while take_record(side, items, conversation.level) do
    end
  end
  take_units(side, items)
end

-- Who has opened a connection speaks first
local function new_side(way, protocol)
  local role = FORMATS.connections[protocol][way]
  local handshake = {}
  for _, step in ipairs(FORMATS.handshake[way]) do
    table.insert(handshake, step)
  end
  return {
    unit = role.unit, steps = role.steps, handshake = handshake,
    stream = ByteArray.new(), plain = ByteArray.new(), skip = 0,
  }
end

local function take_segment(tvb, pinfo, protocol)
  local stream = tcp_stream().value
  local conversation = conversations[stream] or { level = 0, sides = {} }
  conversations[stream] = conversation
  local from = tostring(pinfo.src) .. " " .. pinfo.src_port
  local bytes = tvb:len() > 0 and tvb:bytes() or ByteArray.new()
  local side = conversation.sides[from]
  if side == nil then
    side = new_side(next(conversation.sides) == nil and "asked" or "answered", protocol)
    conversation.sides[from] = side
  end
  local items = {}
  found_in[pinfo.number] = items
  local sequence = tcp_sequence().value
  if side.cut or (side.next and side.next ~= sequence) then
    side.cut = true
    return items
  end
  side.next = (sequence + tvb:reported_len()) % 4294967296
  side.stream = side.stream .. bytes
  take_all(side, items, conversation)
  side.cut = tvb:len() < tvb:reported_len()
  return items
end

local function show_item(item, branch, names)
  local tvb = item.bytes:tvb(item.kind)
  if item.kind == "record" or item.kind == "encrypted" then
    local head, tag = FORMATS.record.head, FORMATS.record.tag
    local walk = new_walk(tvb, tvb:len(), branch, names)
    walk_steps(walk, { { op = "show", layout = "record.head" } })
    if item.kind == "encrypted" then
      branch:add(sealed_field, tvb(head, tvb:len() - head - tag))
    end
    walk.at = tvb:len() - tag
    walk_steps(walk, { { op = "show", layout = "record.tag" } })
    return
  end
  walk_steps(new_walk(tvb, item.full, branch, names), item.steps)
end

local function dissect_segment(tvb, pinfo, tree)
  local protocol = protocol_of()
  if not protocol or not FORMATS.connections[protocol] then
    return false
  end
  local items = found_in[pinfo.number] or take_segment(tvb, pinfo, protocol)
  local names = {}
  local branch = begin_tree(tvb, pinfo, tree, protocol)
  for _, item in ipairs(items) do
    show_item(item, branch, names)
  end
  end_info(pinfo, names)
  return true
end

ompy:register_heuristic("udp", dissect_datagram)
ompy:register_heuristic("tcp", dissect_segment)
