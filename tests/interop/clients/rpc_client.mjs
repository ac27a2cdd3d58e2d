// Goes through all that the RpcClient of a pi package offers. Usage: node rpc_client.mjs PACKAGE_FOLDER < {given}
import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { pathToFileURL } from "node:url";

const { RpcClient } = await import(pathToFileURL(join(process.argv[2], "dist", "index.js")));
const given = JSON.parse(readFileSync(0, "utf8"));
process.env.AGENT_COMMAND = JSON.stringify(given.agent);
const client = new RpcClient({
  cliPath: given.launcher, cwd: given.cwd, provider: "fa", model: "m", args: given.args,
});
const facts = {};
let events = [];
client.onEvent((event) => events.push(event));

// Settled, also where the client itself takes agent_end for the end.
const until = (wanted) => new Promise((resolve) => {
  const stop = client.onEvent((event) => wanted(event) && (stop(), resolve(event)));
});
const settled = () => until((event) => event.type === "agent_settled");
const ran = async (message) => {
  events = [];
  const end = settled();
  const told = await client.prompt(message);
  await end;
  return told ?? null;
};
const text = () => client.getLastAssistantText();
const outcome = (promise) => promise.then((value) => value ?? null, (error) => ({ refused: error.message }));
const offered = (name, ...given) => (client[name] ? outcome(client[name](...given)) : Promise.resolve("not offered"));

await client.start();
const first = await client.getState();

facts.disposition = await ran("SAY hello there");
facts.prompt = await text();
facts.agentEnd = events.find((event) => event.type === "agent_end");

await ran('TOOL bash {"command": "echo from the tool"}\nSAY tool done');
facts.tool = {
  text: await text(),
  result: events.find((event) => event.type === "tool_execution_end").result.content[0].text,
};

const started = until((event) => event.type === "tool_execution_start");
const steered = settled();
await client.prompt('TOOL bash {"command": "until [ -e go ]; do sleep 0.02; done"}\nSAY not steered');
await started;
facts.steerDisposition = (await client.steer("SAY steered")) ?? null;
facts.followUpDisposition = (await client.followUp("SAY followed")) ?? null;
events = [];
writeFileSync(join(given.cwd, "go"), "");
await steered;
const replies = events.filter((event) => event.type === "message_end" && event.message.role === "assistant");
facts.queue = replies.map((event) => event.message.content[0].text);

events = [];
const growing = until((event) => event.assistantMessageEvent?.type === "text_delta");
const stopped = settled();
await client.prompt("HANG half an answer");
await growing;
await client.abort();
await stopped;
facts.abort = (await client.getMessages()).at(-1);

facts.waited = (await client.promptAndWait("SAY waited for")).at(-1).type;
facts.retryDisposition = await ran("ERR 529 x1 Overloaded\nSAY recovered");
facts.retry = { text: await text(), willRetry: events.filter((e) => e.type === "agent_end").map((e) => e.willRetry) };

facts.bash = await client.bash("echo out; echo err >&2; exit 3");
const long = client.bash("sleep 60");
await client.abortBash();
facts.abortBash = await long;

facts.stats = await client.getSessionStats();
facts.export = existsSync((await client.exportHtml(join(given.cwd, "page.html"))).path);
facts.models = (await client.getAvailableModels()).map((model) => model.id);
facts.setModel = (await client.setModel("fa", "m2")).id;
facts.cycleModel = (await client.cycleModel()).model.id;
facts.noModel = await outcome(client.setModel("fa", "nothing"));
facts.setThinking = await outcome(client.setThinkingLevel("high"));
facts.cycleThinking = await client.cycleThinkingLevel();
facts.levels = await offered("getAvailableThinkingLevels");
facts.modes = [await outcome(client.setSteeringMode("all")), await outcome(client.setFollowUpMode("all"))];
facts.retrySwitch = [await outcome(client.setAutoRetry(true)), await outcome(client.abortRetry())];
facts.compaction = [await outcome(client.setAutoCompaction(true)), await outcome(client.compact())];
facts.commands = Array.isArray(await client.getCommands());
facts.clearQueue = await offered("clearQueue");
facts.entries = (await offered("getEntries")).entries?.length ?? "not offered";
facts.tree = (await offered("getTree")).tree?.length ?? "not offered";
await client.setSessionName("named");
facts.name = (await client.getState()).sessionName;

const [message] = await client.getForkMessages();
facts.fork = await client.fork(message.entryId);
facts.forkedAway = (await client.getState()).sessionFile !== first.sessionFile;
facts.switched = await client.switchSession(first.sessionFile);
facts.clone = await client.clone();
facts.cloned = (await client.getMessages()).length;
facts.new = await client.newSession();
facts.empty = (await client.getMessages()).length;

const begun = Date.now();
await client.stop();
facts.stop = Date.now() - begun;
facts.stderr = client.getStderr();
console.log(JSON.stringify(facts));
process.exit(0);
