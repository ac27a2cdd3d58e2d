// A client that knows the protocol by its declarations alone. It is compiled, never run.

import type {
  AgentRecord,
  AssistantMessageEvent,
  ClientRecord,
  Commands,
  Entry,
  Event,
  ExtensionUiRequest,
  ExtensionUiResponse,
  Message,
  Response,
  Responses,
  SessionTree,
} from "./atomic-rpc";

function never(value: never): never {
  throw new Error(`unknown: ${JSON.stringify(value)}`);
}

// ---- one line of stdout

export function shown(record: AgentRecord): string {
  switch (record.type) {
    case "response":
      return answered(record);
    case "extension_ui_request":
      return asked(record);
    default:
      return happened(record);
  }
}

function answered(response: Response): string {
  if (!response.success) {
    return `${response.command ?? "no command"} failed: ${response.error}`;
  }
  switch (response.command) {
    case "get_state":
      return response.data.model?.name ?? response.data.sessionId;
    case "cycle_model":
      return response.data === null ? "no other model" : response.data.model.id;
    case "set_thinking_level":
      return response.data?.level ?? "set";
    case "bash":
      return `${response.data.exitCode ?? "killed"} ${response.data.fullOutputPath ?? ""}`;
    case "login_provider":
      return response.data.cancelled ? response.data.provider : String(response.data.models.length);
    case "get_tree":
      return String(deepest(response.data));
    default:
      // @ts-expect-error: not every response has data
      response.data;
      return response.command;
  }
}

function happened(event: Event): string {
  switch (event.type) {
    case "message_update":
      return grown(event.assistantMessageEvent) + String(event.usage.cost.total);
    case "message_end":
      return said(event.message);
    case "tool_execution_end":
      return event.result.content.map((part) => (part.type === "text" ? part.text : part.mimeType)).join();
    case "bash_execution_update":
      return event.channel === "stderr" ? `! ${event.delta}` : event.delta;
    case "compaction_end":
      return event.result?.compactedText ?? event.errorMessage ?? "aborted";
    case "entry_appended":
      return written(event.entry);
    case "model_changed":
      // @ts-expect-error: the model is no text
      return event.model;
    default:
      return event.type;
  }
}

function grown(change: AssistantMessageEvent): string {
  switch (change.type) {
    case "text_delta":
    case "thinking_delta":
    case "toolcall_delta":
      return change.delta;
    case "text_end":
    case "thinking_end":
      return change.content;
    case "toolcall_end":
      return change.toolCall.name;
    case "text_start":
    case "thinking_start":
    case "toolcall_start":
      return String(change.contentIndex);
    case "done":
    case "error":
      return change.reason;
    case "start":
      return "";
    default:
      return never(change);
  }
}

function said(message: Message): string {
  switch (message.role) {
    case "user":
    case "custom":
      return typeof message.content === "string" ? message.content : String(message.content.length);
    case "assistant":
      return message.content.map((part) => (part.type === "toolCall" ? part.name : part.type)).join();
    case "toolResult":
      return message.toolCallId;
    case "bashExecution":
      return message.output;
    case "branchSummary":
      return message.summary;
    default:
      return never(message);
  }
}

function written(entry: Entry): string {
  if (entry.type === "message") {
    return said(entry.message);
  }
  // @ts-expect-error: only a message has one
  return entry.message;
}

function deepest(data: SessionTree): number {
  const waiting = data.tree.map((node) => ({ node, depth: 1 }));
  let found = 0;
  for (let next = waiting.pop(); next; next = waiting.pop()) {
    const depth = next.depth;
    found = Math.max(found, depth);
    waiting.push(...next.node.children.map((node) => ({ node, depth: depth + 1 })));
  }
  return found;
}

function asked(request: ExtensionUiRequest): string {
  return request.method === "select" ? request.options.join() : request.method;
}

// ---- one line of stdin

type Asked<T extends keyof Commands> = Omit<Commands[T], "type" | "id">;
type Answered<T extends keyof Responses> = Extract<Responses[T], { success: true }>;

declare function request<T extends keyof Commands & keyof Responses>(type: T, fields: Asked<T>): Promise<Answered<T>>;

export async function played(): Promise<string> {
  await request("prompt", { message: "hello", streamingBehavior: "steer" });
  const { data } = await request("bash", { command: "ls", excludeFromContext: true });
  const state = await request("get_state", {});
  // @ts-expect-error: a prompt needs a message
  await request("prompt", {});
  return data.output + state.data.thinkingLevel;
}

const reply: ExtensionUiResponse = { type: "extension_ui_response", id: "1", confirmed: true };
export const lines: ClientRecord[] = [
  reply,
  { type: "abort", id: 7 },
  { type: "set_model", provider: "anthropic", modelId: "m", persist: null },
  // @ts-expect-error: there is no such level
  { type: "set_thinking_level", level: "enormous" },
];
