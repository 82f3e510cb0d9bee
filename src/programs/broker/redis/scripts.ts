import type { Redis, Result } from "ioredis";

/**
 * What must happen in one step in Redis. When its memory is full, Redis rejects a script that begins with a write that needs memory. So
 * only new messages are rejected then: everything that a bridge needs to empty its queue begins with another write.
 *
 * The keys:
 *
 * - `broker:sequence`: the number of the last message
 * - `broker:subscriptions:<client>`: hash from filter to QoS
 * - `broker:subscribers:<topic>`: hash from client to QoS, for filters without wildcards
 * - `broker:wildcards`: hash from `[filter, client]` as JSON to QoS, also for shared subscriptions; only services have them, so there are few
 * - `broker:queue:<client>`: stream of messages with their number as id; `broker:bytes`: hash from client to the size of its queue
 * - `broker:session:<client>`: hash with the times of a session, and the connection that uses it
 * - `broker:ended`: sorted set of the sessions without a connection, by the time of its end
 * - `broker:agents`: set of the agents that have sessions; `broker:agent:<ap_id>`: set of their client ids
 * - `broker:nodes`: set of nodes; `broker:lease:<node>`: exists while the node is alive; `broker:connected:<node>`: set of client ids
 */

declare module "ioredis" {
  interface RedisCommander<Context> {
    /** Adds a message to the queues of all its subscribers, and removes the oldest messages of a queue that is too long. Returns its number. */
    brokerEnqueue(
      topic: string,
      qos: number,
      payload: string | Buffer,
      ...limits: [agentMessages: number, agentBytes: number, serviceMessages: number, serviceBytes: number]
    ): Result<number, Context>;
    /** Removes a message from a queue. */
    brokerAcknowledge(client: string, number: number): Result<null, Context>;
    /** Adds a subscription. The last argument is its field in `broker:wildcards`, or empty. */
    brokerSubscribe(client: string, filter: string, qos: number, wildcard: string): Result<null, Context>;
    /** Records that a connection uses a session. The owner is the agent whose session it is, or empty. */
    brokerOpenSession(
      client: string,
      connection: string,
      node: string,
      nowMs: number,
      owner: string,
    ): Result<null, Context>;
    /** Records that a node is alive. */
    brokerRenewLease(node: string, seconds: number): Result<null, Context>;
    /** Ends a session, unless another connection uses it. */
    brokerEndSession(client: string, connection: string, node: string, nowMs: number): Result<null, Context>;
  }
}

const MATCHING = `
local function levelsOf(text)
  local levels = {}
  for level in string.gmatch(text .. "/", "([^/]*)/") do levels[#levels + 1] = level end
  return levels
end
local function matches(filter, topic, topicLevels)
  local levels = levelsOf(filter)
  -- A wildcard at the first level does not match the topics of the broker itself.
  if (levels[1] == "+" or levels[1] == "#") and string.sub(topic, 1, 1) == "$" then return false end
  for i, level in ipairs(levels) do
    if level == "#" then return true end
    if topicLevels[i] == nil or (level ~= "+" and level ~= topicLevels[i]) then return false end
  end
  return #levels == #topicLevels
end
`;

const REMOVAL = `
local function remove(client, queue, entry)
  redis.call("XDEL", queue, entry[1])
  local size = 0
  for i = 1, #entry[2], 2 do
    if entry[2][i] ~= "q" then size = size + #entry[2][i + 1] end
  end
  return redis.call("HINCRBY", "broker:bytes", client, -size)
end
`;

const ENQUEUE = `${MATCHING}${REMOVAL}
local topic, qos, payload = ARGV[1], tonumber(ARGV[2]), ARGV[3]
local receivers = {}
local function add(client, granted)
  receivers[client] = math.max(receivers[client] or 0, math.min(qos, tonumber(granted)))
end
local exact = redis.call("HGETALL", "broker:subscribers:" .. topic)
for i = 1, #exact, 2 do add(exact[i], exact[i + 1]) end
local wildcards = redis.call("HGETALL", "broker:wildcards")
local topicLevels = #wildcards > 0 and levelsOf(topic)
local groups = {}
for i = 1, #wildcards, 2 do
  local filter, client = unpack(cjson.decode(wildcards[i]))
  local shared = string.match(filter, "^%$share/[^/]+/(.+)$")
  if matches(shared or filter, topic, topicLevels) then
    if shared then
      groups[filter] = groups[filter] or { connected = {}, away = {} }
      local isConnected = redis.call("HEXISTS", "broker:session:" .. client, "connection") == 1
      table.insert(groups[filter][isConnected and "connected" or "away"], { client, wildcards[i + 1] })
    else
      add(client, wildcards[i + 1])
    end
  end
end
local number = redis.call("INCR", "broker:sequence")
-- The members of a group take turns. One that is away gets a message only if all are.
for _, group in pairs(groups) do
  local members = #group.connected > 0 and group.connected or group.away
  add(unpack(members[number % #members + 1]))
end
local id = string.format("%.0f-0", number)
for client, granted in pairs(receivers) do
  local queue = "broker:queue:" .. client
  redis.call("XADD", queue, id, "t", topic, "q", granted, "p", payload)
  local bytes = redis.call("HINCRBY", "broker:bytes", client, #topic + #payload)
  local limit = string.find(client, "^agent/[^/]+/") and 4 or 6
  while redis.call("XLEN", queue) > tonumber(ARGV[limit]) or bytes > tonumber(ARGV[limit + 1]) do
    bytes = remove(client, queue, redis.call("XRANGE", queue, "-", "+", "COUNT", 1)[1])
  end
end
return number
`;

const ACKNOWLEDGE = `${REMOVAL}
local queue = "broker:queue:" .. ARGV[1]
local entry = redis.call("XRANGE", queue, ARGV[2] .. "-0", ARGV[2] .. "-0")[1]
if entry then remove(ARGV[1], queue, entry) end
return false
`;

const SUBSCRIBE = `
local client, filter, qos = ARGV[1], ARGV[2], ARGV[3]
local own = "broker:subscriptions:" .. client
redis.call("HDEL", own, filter)
redis.call("HSET", own, filter, qos)
if ARGV[4] == "" then redis.call("HSET", "broker:subscribers:" .. filter, client, qos)
else redis.call("HSET", "broker:wildcards", ARGV[4], qos) end
return false
`;

const OPEN_SESSION = `
local client, connection, node, now, owner = unpack(ARGV)
local key = "broker:session:" .. client
redis.call("HDEL", key, "ended")
redis.call("ZREM", "broker:ended", client)
redis.call("HSET", key, "opened", now, "connection", connection)
redis.call("SADD", "broker:connected:" .. node, client)
if owner ~= "" then
  redis.call("SADD", "broker:agents", owner)
  redis.call("SADD", "broker:agent:" .. owner, client)
end
return false
`;

const RENEW_LEASE = `
local lease = "broker:lease:" .. ARGV[1]
redis.call("DEL", lease)
redis.call("SET", lease, "", "EX", ARGV[2])
redis.call("SADD", "broker:nodes", ARGV[1])
return false
`;

const END_SESSION = `
local key = "broker:session:" .. ARGV[1]
redis.call("SREM", "broker:connected:" .. ARGV[3], ARGV[1])
if redis.call("HGET", key, "connection") ~= ARGV[2] then return false end
redis.call("HDEL", key, "connection")
redis.call("HSET", key, "ended", ARGV[4])
redis.call("ZADD", "broker:ended", ARGV[4], ARGV[1])
return false
`;

export function defineScripts(redis: Redis): void {
  const scripts = {
    brokerEnqueue: ENQUEUE,
    brokerAcknowledge: ACKNOWLEDGE,
    brokerSubscribe: SUBSCRIBE,
    brokerOpenSession: OPEN_SESSION,
    brokerRenewLease: RENEW_LEASE,
    brokerEndSession: END_SESSION,
  };
  for (const [name, lua] of Object.entries(scripts)) redis.defineCommand(name, { lua, numberOfKeys: 0 });
}
