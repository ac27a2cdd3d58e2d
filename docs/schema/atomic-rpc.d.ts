// What atomic and its clients say to each other, and what stands in session files.
// Made from the types of the wire by `make schema`; `atomic schema typescript` prints it. docs/schema.md tells more.
// Objects may have more fields than are named here: ignore those that you do not know, and events as well.

/** The client's own id of a command, any JSON scalar, echoed as it was given. */
export type RequestId = string | number | boolean | null;

/** An entry and what hangs on it. A conversation is a chain, so nodes nest as deep as it is long. */
export interface TreeNode {
  entry: Entry;
  children: TreeNode[];
  label?: string;
  labelTimestamp?: string;
}

/** Data of `get_tree`: the roots, and the entry that the next one will hang on. */
export interface SessionTree {
  tree: TreeNode[];
  leafId: string | null;
}

/**
 * Command prompt.
 * Ask the agent something. `streamingBehavior` says how to queue while the session is busy; without it a busy session
 * refuses.
 */
export interface PromptCommand {
  type: "prompt";
  message: string;
  images?: ImageContentInput[] | null;
  streamingBehavior?: StreamingBehavior | null;
  id?: RequestId;
}

/** An image: base64 `data` of the kind `mimeType`. */
export interface ImageContentInput {
  type?: "image";
  data: string;
  mimeType: string;
}

export type StreamingBehavior = "steer" | "followUp";

/**
 * Command steer.
 * Queue a message for the next request to the model.
 */
export interface SteerCommand {
  type: "steer";
  message: string;
  images?: ImageContentInput[] | null;
  id?: RequestId;
}

/**
 * Command follow_up.
 * Queue a message for when the run would end.
 */
export interface FollowUpCommand {
  type: "follow_up";
  message: string;
  images?: ImageContentInput[] | null;
  id?: RequestId;
}

/**
 * Command abort.
 * End the run, the wait for a retry included.
 */
export interface AbortCommand {
  type: "abort";
  id?: RequestId;
}

/**
 * Command clear_queue.
 * Take back what is queued.
 */
export interface ClearQueueCommand {
  type: "clear_queue";
  id?: RequestId;
}

/**
 * Command pause_queued_messages.
 * Hold what is queued, so that `abort` does not begin it.
 */
export interface PauseQueuedMessagesCommand {
  type: "pause_queued_messages";
  id?: RequestId;
}

/**
 * Command resume_queued_messages.
 * Let go what is held, with the next prompt.
 */
export interface ResumeQueuedMessagesCommand {
  type: "resume_queued_messages";
  id?: RequestId;
}

/**
 * Command set_steering_mode.
 * Whether queued steering messages are delivered together or one at a time.
 */
export interface SetSteeringModeCommand {
  type: "set_steering_mode";
  mode: QueueMode;
  id?: RequestId;
}

export type QueueMode = "all" | "one-at-a-time";

/**
 * Command set_follow_up_mode.
 * Whether queued follow-ups are delivered together or one at a time.
 */
export interface SetFollowUpModeCommand {
  type: "set_follow_up_mode";
  mode: QueueMode;
  id?: RequestId;
}

/**
 * Command get_state.
 * How the session stands.
 */
export interface GetStateCommand {
  type: "get_state";
  id?: RequestId;
}

/**
 * Command get_messages.
 * The conversation as the model sees it.
 */
export interface GetMessagesCommand {
  type: "get_messages";
  id?: RequestId;
}

/**
 * Command get_session_stats.
 * Counts, tokens and cost of the session.
 */
export interface GetSessionStatsCommand {
  type: "get_session_stats";
  id?: RequestId;
}

/**
 * Command get_last_assistant_text.
 * The text of the last answer.
 */
export interface GetLastAssistantTextCommand {
  type: "get_last_assistant_text";
  id?: RequestId;
}

/**
 * Command get_entries.
 * Entries strictly after the one with the id `since`; all of them without it.
 */
export interface GetEntriesCommand {
  type: "get_entries";
  since?: string | null;
  id?: RequestId;
}

/**
 * Command get_tree.
 * The entries of the session as a tree.
 */
export interface GetTreeCommand {
  type: "get_tree";
  id?: RequestId;
}

/**
 * Command get_fork_messages.
 * The user messages that `fork` can start before.
 */
export interface GetForkMessagesCommand {
  type: "get_fork_messages";
  id?: RequestId;
}

/**
 * Command set_model.
 * Use another model; `persist` makes it the default at start.
 */
export interface SetModelCommand {
  type: "set_model";
  provider: string;
  modelId: string;
  persist?: boolean | null;
  id?: RequestId;
}

/**
 * Command cycle_model.
 * Use the next model of the scope, or of all that can be used.
 */
export interface CycleModelCommand {
  type: "cycle_model";
  direction?: "forward" | "backward" | null;
  persist?: boolean | null;
  id?: RequestId;
}

/**
 * Command get_available_models.
 * The models that can be used, and those to cycle through.
 */
export interface GetAvailableModelsCommand {
  type: "get_available_models";
  id?: RequestId;
}

/**
 * Command refresh_models.
 * `timeoutMs` in milliseconds, unbounded without it. `allowNetwork` is `null` when the client left it open.
 */
export interface RefreshModelsCommand {
  type: "refresh_models";
  timeoutMs?: number | null;
  force?: boolean | null;
  allowNetwork?: boolean | null;
  id?: RequestId;
}

/**
 * Command login_provider.
 * Log in to a provider. `loginId` names this login to `cancel_login_provider`.
 */
export interface LoginProviderCommand {
  type: "login_provider";
  provider: string;
  authType?: "api_key" | "oauth" | null | null;
  loginId?: string | null;
  id?: RequestId;
}

/**
 * Command save_provider_credential.
 * Store a credential. It is never sent back.
 */
export interface SaveProviderCredentialCommand {
  type: "save_provider_credential";
  provider: string;
  credential: Record<string, unknown>;
  id?: RequestId;
}

/**
 * Command cancel_login_provider.
 * End a login, or all of the provider.
 */
export interface CancelLoginProviderCommand {
  type: "cancel_login_provider";
  provider: string;
  loginId?: string | null;
  id?: RequestId;
}

/**
 * Command logout_provider.
 * Remove the stored credential of a provider.
 */
export interface LogoutProviderCommand {
  type: "logout_provider";
  provider: string;
  id?: RequestId;
}

/**
 * Command set_thinking_level.
 * How much the model may think; clamped to what it supports.
 */
export interface SetThinkingLevelCommand {
  type: "set_thinking_level";
  level: ThinkingLevel;
  persist?: boolean | null;
  id?: RequestId;
}

export type ThinkingLevel = "off" | "minimal" | "low" | "medium" | "high" | "xhigh" | "max";

/**
 * Command cycle_thinking_level.
 * The next level that the model supports.
 */
export interface CycleThinkingLevelCommand {
  type: "cycle_thinking_level";
  id?: RequestId;
}

/**
 * Command get_available_thinking_levels.
 * The levels that the model supports, in cycle order.
 */
export interface GetAvailableThinkingLevelsCommand {
  type: "get_available_thinking_levels";
  id?: RequestId;
}

/**
 * Command compact.
 * Shorten the context. What is not said follows from the settings. `compression_ratio` is the share of lines to keep,
 * `preserve_recent` the number of newest messages that stay as they are, `query` what the rest is judged by.
 */
export interface CompactCommand {
  type: "compact";
  compression_ratio?: number | null;
  preserve_recent?: number | null;
  query?: string | null;
  id?: RequestId;
}

/**
 * Command abort_compaction.
 * End a compaction.
 */
export interface AbortCompactionCommand {
  type: "abort_compaction";
  id?: RequestId;
}

/**
 * Command set_auto_compaction.
 * Whether a context that is nearly full is shortened by itself.
 */
export interface SetAutoCompactionCommand {
  type: "set_auto_compaction";
  enabled: boolean;
  id?: RequestId;
}

/**
 * Command set_auto_retry.
 * Whether failures that may pass are tried again.
 */
export interface SetAutoRetryCommand {
  type: "set_auto_retry";
  enabled: boolean;
  id?: RequestId;
}

/**
 * Command abort_retry.
 * End the wait for a retry.
 */
export interface AbortRetryCommand {
  type: "abort_retry";
  id?: RequestId;
}

/**
 * Command bash.
 * Run a shell command for the user. The model sees the result unless `excludeFromContext`.
 */
export interface BashCommand {
  type: "bash";
  command: string;
  excludeFromContext?: boolean | null;
  id?: RequestId;
}

/**
 * Command user_bash.
 * `bash` under another name.
 */
export interface UserBashCommand {
  type: "user_bash";
  command: string;
  excludeFromContext?: boolean | null;
  id?: RequestId;
}

/**
 * Command abort_bash.
 * Cancels the shell requests whose `id` is `requestId`, compared as it stands; without it, all.
 */
export interface AbortBashCommand {
  type: "abort_bash";
  requestId?: RequestId;
  id?: RequestId;
}

/** Command get_tasks. */
export interface GetTasksCommand {
  type: "get_tasks";
  id?: RequestId;
}

/**
 * Command get_task.
 * With `transcript`, which is for subagents alone, also a page of its conversation.
 */
export interface GetTaskCommand {
  type: "get_task";
  taskId: string;
  transcript?: TranscriptPage | null;
  id?: RequestId;
}

/** Which entries of a transcript: at most `limit` (50 if left out) before the number `before`, else the last. */
export interface TranscriptPage {
  before?: number | null;
  limit?: number | null;
}

/** Command cancel_task. */
export interface CancelTaskCommand {
  type: "cancel_task";
  taskId: string;
  id?: RequestId;
}

/**
 * Command send_task_input.
 * Types on a task's terminal, or answers a subagent's question. `operationId` names what is typed: sent twice, it is
 * typed once. `requestId` names the question; it may be left out, since a subagent has at most one open.
 */
export interface SendTaskInputCommand {
  type: "send_task_input";
  taskId: string;
  input: string;
  operationId?: string | null;
  requestId?: string | null;
  id?: RequestId;
}

/**
 * Command resize_task.
 * Gives a task's terminal another size, in characters; what runs there is told. It begins with 120 by 40.
 */
export interface ResizeTaskCommand {
  type: "resize_task";
  taskId: string;
  columns: number;
  rows: number;
  id?: RequestId;
}

/**
 * Command wait_task.
 * Without `budgetMs` it waits until the task has settled.
 */
export interface WaitTaskCommand {
  type: "wait_task";
  taskId: string;
  budgetMs?: number | null;
  id?: RequestId;
}

/**
 * Command set_task_subscription.
 * `transcript` is the id of a subagent whose conversation is told too, as long as this session is current; one at a
 * time.
 */
export interface SetTaskSubscriptionCommand {
  type: "set_task_subscription";
  enabled: boolean;
  transcript?: string | null;
  id?: RequestId;
}

/**
 * Command new_session.
 * Begin a new session. `parentSession` is the path of the one it comes from.
 */
export interface NewSessionCommand {
  type: "new_session";
  parentSession?: string | null;
  id?: RequestId;
}

/**
 * Command switch_session.
 * Open the session in a file.
 */
export interface SwitchSessionCommand {
  type: "switch_session";
  sessionPath: string;
  id?: RequestId;
}

/**
 * Command import_session.
 * Copy a session file into the session folder and open the copy.
 */
export interface ImportSessionCommand {
  type: "import_session";
  inputPath: string;
  cwdOverride?: string | null;
  id?: RequestId;
}

/**
 * Command fork.
 * A new session with what came before a user message.
 */
export interface ForkCommand {
  type: "fork";
  entryId: string;
  id?: RequestId;
}

/**
 * Command clone.
 * A new session with the same history.
 */
export interface CloneCommand {
  type: "clone";
  id?: RequestId;
}

/**
 * Command set_session_name.
 * Name the session.
 */
export interface SetSessionNameCommand {
  type: "set_session_name";
  name: string;
  id?: RequestId;
}

/**
 * Command navigate_tree.
 * Move to another place in the session's tree.
 */
export interface NavigateTreeCommand {
  type: "navigate_tree";
  targetId: string;
  options?: NavigateOptions | null;
  id?: RequestId;
}

/** How to leave a branch: whether it is summarised, with which instructions, and which label is set. */
export interface NavigateOptions {
  summarize?: boolean | null;
  customInstructions?: string | null;
  replaceInstructions?: boolean | null;
  label?: string | null;
}

/**
 * Command set_label.
 * An absent or empty `label` clears it.
 */
export interface SetLabelCommand {
  type: "set_label";
  entryId: string;
  label?: string | null;
  id?: RequestId;
}

/**
 * Command export_html.
 * Write the session as a page.
 */
export interface ExportHtmlCommand {
  type: "export_html";
  outputPath?: string | null;
  id?: RequestId;
}

/**
 * Command reload.
 * Read settings, templates, skills and context files again.
 */
export interface ReloadCommand {
  type: "reload";
  id?: RequestId;
}

/**
 * Command get_commands.
 * What a prompt can call as `/name`.
 */
export interface GetCommandsCommand {
  type: "get_commands";
  id?: RequestId;
}

/**
 * Command get_command_completions.
 * What can follow after `/name`.
 */
export interface GetCommandCompletionsCommand {
  type: "get_command_completions";
  commandName: string;
  argumentPrefix: string;
  id?: RequestId;
}

/**
 * Command get_shortcuts.
 * The shortcuts of extensions.
 */
export interface GetShortcutsCommand {
  type: "get_shortcuts";
  id?: RequestId;
}

/**
 * Command invoke_shortcut.
 * Press a shortcut of an extension.
 */
export interface InvokeShortcutCommand {
  type: "invoke_shortcut";
  key: string;
  id?: RequestId;
}

export type Command =
  | PromptCommand
  | SteerCommand
  | FollowUpCommand
  | AbortCommand
  | ClearQueueCommand
  | PauseQueuedMessagesCommand
  | ResumeQueuedMessagesCommand
  | SetSteeringModeCommand
  | SetFollowUpModeCommand
  | GetStateCommand
  | GetMessagesCommand
  | GetSessionStatsCommand
  | GetLastAssistantTextCommand
  | GetEntriesCommand
  | GetTreeCommand
  | GetForkMessagesCommand
  | SetModelCommand
  | CycleModelCommand
  | GetAvailableModelsCommand
  | RefreshModelsCommand
  | LoginProviderCommand
  | SaveProviderCredentialCommand
  | CancelLoginProviderCommand
  | LogoutProviderCommand
  | SetThinkingLevelCommand
  | CycleThinkingLevelCommand
  | GetAvailableThinkingLevelsCommand
  | CompactCommand
  | AbortCompactionCommand
  | SetAutoCompactionCommand
  | SetAutoRetryCommand
  | AbortRetryCommand
  | BashCommand
  | UserBashCommand
  | AbortBashCommand
  | GetTasksCommand
  | GetTaskCommand
  | CancelTaskCommand
  | SendTaskInputCommand
  | ResizeTaskCommand
  | WaitTaskCommand
  | SetTaskSubscriptionCommand
  | NewSessionCommand
  | SwitchSessionCommand
  | ImportSessionCommand
  | ForkCommand
  | CloneCommand
  | SetSessionNameCommand
  | NavigateTreeCommand
  | SetLabelCommand
  | ExportHtmlCommand
  | ReloadCommand
  | GetCommandsCommand
  | GetCommandCompletionsCommand
  | GetShortcutsCommand
  | InvokeShortcutCommand;

/** Data of `prompt`, `steer` and `follow_up` with `--rpc-compat pi`. */
export interface Accepted {
  disposition: Disposition;
}

export type Disposition = "started" | "queued" | "handled";

/** Success of prompt. */
export interface PromptSuccess {
  id?: RequestId;
  type: "response";
  command: "prompt";
  success: true;
  data?: Accepted;
}

/** Failure of prompt. */
export interface PromptFailure {
  id?: RequestId;
  type: "response";
  command: "prompt";
  success: false;
  error: string;
  errorCode?: string;
  errorDetails?: Record<string, string>;
}

/** Response to prompt. */
export type PromptResponse = PromptSuccess | PromptFailure;

/** Success of steer. */
export interface SteerSuccess {
  id?: RequestId;
  type: "response";
  command: "steer";
  success: true;
  data?: Accepted;
}

/** Failure of steer. */
export interface SteerFailure {
  id?: RequestId;
  type: "response";
  command: "steer";
  success: false;
  error: string;
  errorCode?: string;
  errorDetails?: Record<string, string>;
}

/** Response to steer. */
export type SteerResponse = SteerSuccess | SteerFailure;

/** Success of follow_up. */
export interface FollowUpSuccess {
  id?: RequestId;
  type: "response";
  command: "follow_up";
  success: true;
  data?: Accepted;
}

/** Failure of follow_up. */
export interface FollowUpFailure {
  id?: RequestId;
  type: "response";
  command: "follow_up";
  success: false;
  error: string;
  errorCode?: string;
  errorDetails?: Record<string, string>;
}

/** Response to follow_up. */
export type FollowUpResponse = FollowUpSuccess | FollowUpFailure;

/** Success of abort. */
export interface AbortSuccess {
  id?: RequestId;
  type: "response";
  command: "abort";
  success: true;
}

/** Failure of abort. */
export interface AbortFailure {
  id?: RequestId;
  type: "response";
  command: "abort";
  success: false;
  error: string;
  errorCode?: string;
  errorDetails?: Record<string, string>;
}

/** Response to abort. */
export type AbortResponse = AbortSuccess | AbortFailure;

/** What `clear_queue` removed. */
export interface QueuedTexts {
  steering: string[];
  followUp: string[];
}

/** Success of clear_queue. */
export interface ClearQueueSuccess {
  id?: RequestId;
  type: "response";
  command: "clear_queue";
  success: true;
  data: QueuedTexts;
}

/** Failure of clear_queue. */
export interface ClearQueueFailure {
  id?: RequestId;
  type: "response";
  command: "clear_queue";
  success: false;
  error: string;
  errorCode?: string;
  errorDetails?: Record<string, string>;
}

/** Response to clear_queue. */
export type ClearQueueResponse = ClearQueueSuccess | ClearQueueFailure;

/** Success of pause_queued_messages. */
export interface PauseQueuedMessagesSuccess {
  id?: RequestId;
  type: "response";
  command: "pause_queued_messages";
  success: true;
}

/** Failure of pause_queued_messages. */
export interface PauseQueuedMessagesFailure {
  id?: RequestId;
  type: "response";
  command: "pause_queued_messages";
  success: false;
  error: string;
  errorCode?: string;
  errorDetails?: Record<string, string>;
}

/** Response to pause_queued_messages. */
export type PauseQueuedMessagesResponse = PauseQueuedMessagesSuccess | PauseQueuedMessagesFailure;

/** Whether something was held. */
export interface Released {
  released: boolean;
}

/** Success of resume_queued_messages. */
export interface ResumeQueuedMessagesSuccess {
  id?: RequestId;
  type: "response";
  command: "resume_queued_messages";
  success: true;
  data: Released;
}

/** Failure of resume_queued_messages. */
export interface ResumeQueuedMessagesFailure {
  id?: RequestId;
  type: "response";
  command: "resume_queued_messages";
  success: false;
  error: string;
  errorCode?: string;
  errorDetails?: Record<string, string>;
}

/** Response to resume_queued_messages. */
export type ResumeQueuedMessagesResponse = ResumeQueuedMessagesSuccess | ResumeQueuedMessagesFailure;

/** Success of set_steering_mode. */
export interface SetSteeringModeSuccess {
  id?: RequestId;
  type: "response";
  command: "set_steering_mode";
  success: true;
}

/** Failure of set_steering_mode. */
export interface SetSteeringModeFailure {
  id?: RequestId;
  type: "response";
  command: "set_steering_mode";
  success: false;
  error: string;
  errorCode?: string;
  errorDetails?: Record<string, string>;
}

/** Response to set_steering_mode. */
export type SetSteeringModeResponse = SetSteeringModeSuccess | SetSteeringModeFailure;

/** Success of set_follow_up_mode. */
export interface SetFollowUpModeSuccess {
  id?: RequestId;
  type: "response";
  command: "set_follow_up_mode";
  success: true;
}

/** Failure of set_follow_up_mode. */
export interface SetFollowUpModeFailure {
  id?: RequestId;
  type: "response";
  command: "set_follow_up_mode";
  success: false;
  error: string;
  errorCode?: string;
  errorDetails?: Record<string, string>;
}

/** Response to set_follow_up_mode. */
export type SetFollowUpModeResponse = SetFollowUpModeSuccess | SetFollowUpModeFailure;

/** Data of `get_state`. `pendingMessageCount` counts both visible queues; `sessionFile` is absent in memory. */
export interface SessionState {
  model: Model | null;
  thinkingLevel: ThinkingLevel;
  isStreaming: boolean;
  isCompacting: boolean;
  steeringMode: QueueMode;
  followUpMode: QueueMode;
  sessionId: string;
  autoCompactionEnabled: boolean;
  messageCount: number;
  pendingMessageCount: number;
  queuedMessagesPaused?: boolean;
  resourceOverlaps?: unknown[];
  sessionFile?: string;
  sessionName?: string;
  compactionReason?: "manual" | "threshold" | "overflow" | "branchSummary";
  modelFallbackMessage?: string;
  modelFallbackReason?: "configured-provider-unsupported" | "session-restore" | "no-models-available";
}

/**
 * `contextWindow` and `maxTokens` count tokens. `thinkingLevelMap` maps a level to the provider's word for it; `null`
 * means that the level is not supported. `compat` holds the switches of an OpenAI-like endpoint.
 */
export interface Model {
  id: string;
  name: string;
  api: string;
  provider: string;
  baseUrl: string;
  reasoning: boolean;
  input: Modality[];
  cost: ModelCost;
  contextWindow: number;
  maxTokens: number;
  thinkingLevelMap?: Record<string, string | null>;
  headers?: Record<string, string>;
  compat?: Record<string, unknown>;
  samplingParams?: Record<string, unknown>;
}

export type Modality = "text" | "image";

/** US dollars per million tokens. */
export interface ModelCost {
  input: number;
  output: number;
  cacheRead: number;
  cacheWrite: number;
  tiers?: CostTier[];
}

/** Prices for the whole request once its input (cache included) exceeds `inputTokensAbove`. */
export interface CostTier {
  inputTokensAbove: number;
  input: number;
  output: number;
  cacheRead: number;
  cacheWrite: number;
}

/** Success of get_state. */
export interface GetStateSuccess {
  id?: RequestId;
  type: "response";
  command: "get_state";
  success: true;
  data: SessionState;
}

/** Failure of get_state. */
export interface GetStateFailure {
  id?: RequestId;
  type: "response";
  command: "get_state";
  success: false;
  error: string;
  errorCode?: string;
  errorDetails?: Record<string, string>;
}

/** Response to get_state. */
export type GetStateResponse = GetStateSuccess | GetStateFailure;

/** Data of `get_messages`. */
export interface MessageList {
  messages: Message[];
}

export type Message =
  | UserMessage
  | AssistantMessage
  | ToolResultMessage
  | BashExecutionMessage
  | CustomMessage
  | BranchSummaryMessage;

/** What the user said. */
export interface UserMessage {
  role: "user";
  content: string | UserContent[];
  timestamp: number;
}

export type UserContent = TextContent | ImageContent;

/** A run of text. `textSignature` is the provider's own identity of it, needed on replay. */
export interface TextContent {
  type: "text";
  text: string;
  textSignature?: string;
}

/** An image: base64 `data` of the kind `mimeType`. */
export interface ImageContent {
  type: "image";
  data: string;
  mimeType: string;
}

/** One reply. `stopReason` is `pending` only in the `message_start` of a reply that still streams. */
export interface AssistantMessage {
  role: "assistant";
  content: AssistantContent[];
  api: string;
  provider: string;
  model: string;
  usage: Usage;
  stopReason: StopReason;
  timestamp: number;
  responseId?: string;
  responseModel?: string;
  rawStopReason?: string;
  errorMessage?: string;
  endTurn?: boolean;
}

export type AssistantContent = TextContent | ThinkingContent | ToolCall;

/** What the model thought. A redacted block keeps its payload in `thinkingSignature`. */
export interface ThinkingContent {
  type: "thinking";
  thinking: string;
  thinkingSignature?: string;
  redacted?: boolean;
}

/** The model asks for a tool. */
export interface ToolCall {
  type: "toolCall";
  id: string;
  name: string;
  arguments: Record<string, unknown>;
  thoughtSignature?: string;
}

/**
 * Tokens of one request. `cacheWrite1h` is the part of `cacheWrite` kept for an hour, `reasoning` the part of `output`
 * that was thinking; both are left out when the provider did not tell them.
 */
export interface Usage {
  input: number;
  output: number;
  cacheRead: number;
  cacheWrite: number;
  totalTokens?: number;
  cost: Cost;
  cacheWrite1h?: number;
  reasoning?: number;
}

/** US dollars, by kind of token. */
export interface Cost {
  input: number;
  output: number;
  cacheRead: number;
  cacheWrite: number;
  total: number;
}

export type StopReason = "pending" | "stop" | "length" | "toolUse" | "error" | "aborted";

/** What a tool answered to the call `toolCallId`. */
export interface ToolResultMessage {
  role: "toolResult";
  toolCallId: string;
  toolName: string;
  content: UserContent[];
  isError: boolean;
  timestamp: number;
  details?: unknown;
  usage?: Usage;
}

/** A shell command that the client ran itself (`bash`, `user_bash`). `exitCode` is absent after a signal. */
export interface BashExecutionMessage {
  role: "bashExecution";
  command: string;
  output: string;
  cancelled: boolean;
  truncated: boolean;
  timestamp: number;
  exitCode?: number;
  fullOutputPath?: string | null;
  excludeFromContext?: boolean;
}

/** A message that an extension or a compaction boundary put into the context. */
export interface CustomMessage {
  role: "custom";
  customType: string;
  content: string | UserContent[];
  display: boolean;
  timestamp: number;
  details?: unknown;
  excludeFromContext?: boolean;
}

/** What happened on a branch that was left. */
export interface BranchSummaryMessage {
  role: "branchSummary";
  summary: string;
  fromId: string;
  timestamp: number;
}

/** Success of get_messages. */
export interface GetMessagesSuccess {
  id?: RequestId;
  type: "response";
  command: "get_messages";
  success: true;
  data: MessageList;
}

/** Failure of get_messages. */
export interface GetMessagesFailure {
  id?: RequestId;
  type: "response";
  command: "get_messages";
  success: false;
  error: string;
  errorCode?: string;
  errorDetails?: Record<string, string>;
}

/** Response to get_messages. */
export type GetMessagesResponse = GetMessagesSuccess | GetMessagesFailure;

/** Data of `get_session_stats`; `cost` in US dollars. `contextUsage` is absent without a model or a window. */
export interface SessionStats {
  sessionId: string;
  userMessages: number;
  assistantMessages: number;
  toolCalls: number;
  toolResults: number;
  totalMessages: number;
  tokens: TokenTotals;
  cost: number;
  sessionFile?: string;
  contextUsage?: ContextUsage;
}

/** Tokens of the whole session; `total` is the sum of the others. */
export interface TokenTotals {
  input: number;
  output: number;
  cacheRead: number;
  cacheWrite: number;
  total: number;
}

/** `tokens` and `percent` are `null` from a compaction until the next good reply. */
export interface ContextUsage {
  tokens: number | null;
  contextWindow: number;
  percent: number | null;
}

/** Success of get_session_stats. */
export interface GetSessionStatsSuccess {
  id?: RequestId;
  type: "response";
  command: "get_session_stats";
  success: true;
  data: SessionStats;
}

/** Failure of get_session_stats. */
export interface GetSessionStatsFailure {
  id?: RequestId;
  type: "response";
  command: "get_session_stats";
  success: false;
  error: string;
  errorCode?: string;
  errorDetails?: Record<string, string>;
}

/** Response to get_session_stats. */
export type GetSessionStatsResponse = GetSessionStatsSuccess | GetSessionStatsFailure;

/** `text` is `null` when there is no answer yet. */
export interface LastAssistantText {
  text: string | null;
}

/** Success of get_last_assistant_text. */
export interface GetLastAssistantTextSuccess {
  id?: RequestId;
  type: "response";
  command: "get_last_assistant_text";
  success: true;
  data: LastAssistantText;
}

/** Failure of get_last_assistant_text. */
export interface GetLastAssistantTextFailure {
  id?: RequestId;
  type: "response";
  command: "get_last_assistant_text";
  success: false;
  error: string;
  errorCode?: string;
  errorDetails?: Record<string, string>;
}

/** Response to get_last_assistant_text. */
export type GetLastAssistantTextResponse = GetLastAssistantTextSuccess | GetLastAssistantTextFailure;

/** Data of `get_entries`; `leafId` is the entry that the next one will hang on. */
export interface EntryList {
  entries: Entry[];
  leafId: string | null;
}

export type Entry =
  | MessageEntry
  | ThinkingLevelChange
  | ModelChange
  | CompactionEntry
  | BranchSummaryEntry
  | CustomEntry
  | CustomMessageEntry
  | LabelEntry
  | SessionInfoEntry
  | SessionSummaryEntry;

/** A message of the conversation. */
export interface MessageEntry {
  type: "message";
  id: string;
  parentId: string | null;
  timestamp: string;
  message: Message;
}

/** From here on the session has this level. */
export interface ThinkingLevelChange {
  type: "thinking_level_change";
  id: string;
  parentId: string | null;
  timestamp: string;
  thinkingLevel: ThinkingLevel;
}

/** From here on the session has this model. */
export interface ModelChange {
  type: "model_change";
  id: string;
  parentId: string | null;
  timestamp: string;
  provider: string;
  modelId: string;
}

/**
 * `firstKeptEntryId` is `null` when no message stays outside. `fromHook` is only ever `true`. Without `details` it is a
 * record of an older program, which changes nothing.
 */
export interface CompactionEntry {
  type: "compaction";
  id: string;
  parentId: string | null;
  timestamp: string;
  summary: string;
  firstKeptEntryId: string | null;
  tokensBefore: number;
  details?: CompactionDetails;
  fromHook?: boolean;
}

/**
 * How a boundary came about. `retriedEntryIds` are replies among the kept messages that were asked for again, so that
 * the context is without them.
 */
export interface CompactionDetails {
  promptVersion: number;
  parameters: CompactionParameters;
  stats: CompactionStats;
  rung: "planned" | "extension" | "fresh";
  strategy: "verbatim-lines";
  plannerModel?: PlannerModel;
  backupPath?: string;
  retriedEntryIds?: string[];
}

/** The wire's names are snake case here. */
export interface CompactionParameters {
  compression_ratio: number;
  preserve_recent: number;
  query?: string;
}

/** Lines and estimated tokens; `percentReduction` is of tokens, 0 to 100. */
export interface CompactionStats {
  linesBefore: number;
  linesDeleted: number;
  linesKept: number;
  rangeCount: number;
  tokensBefore: number;
  tokensAfter: number;
  percentReduction: number;
}

/** The model that planned a compaction, when it was not the session's own. */
export interface PlannerModel {
  provider: string;
  id: string;
  thinkingLevel?: ThinkingLevel;
}

/** `fromId` is an entry id, or `root`. */
export interface BranchSummaryEntry {
  type: "branch_summary";
  id: string;
  parentId: string | null;
  timestamp: string;
  fromId: string;
  summary: string;
  details?: BranchSummaryDetails;
  usage?: Usage;
  fromHook?: boolean;
}

/** Files that were read and changed on the branch. */
export interface BranchSummaryDetails {
  readFiles: string[];
  modifiedFiles: string[];
}

/** Data of an extension; the model does not see it. */
export interface CustomEntry {
  type: "custom";
  id: string;
  parentId: string | null;
  timestamp: string;
  customType: string;
  data?: unknown;
}

/** `excludeFromContext` is only ever `true`. */
export interface CustomMessageEntry {
  type: "custom_message";
  id: string;
  parentId: string | null;
  timestamp: string;
  customType: string;
  content: string | UserContent[];
  display: boolean;
  details?: unknown;
  excludeFromContext?: boolean;
  stageAdmissionKey?: string;
  protectedReconciliation?: ReconciliationDelivery;
}

/** How a message that must not be lost is delivered. */
export interface ReconciliationDelivery {
  delivery: StreamingBehavior;
}

/** Without `label` the target's label is cleared. */
export interface LabelEntry {
  type: "label";
  id: string;
  parentId: string | null;
  timestamp: string;
  targetId: string;
  label?: string;
}

/** The session's name, trimmed; `""` clears it. */
export interface SessionInfoEntry {
  type: "session_info";
  id: string;
  parentId: string | null;
  timestamp: string;
  name: string;
}

/** What the session was about up to an entry. */
export interface SessionSummaryEntry {
  type: "session_summary";
  id: string;
  parentId: string | null;
  timestamp: string;
  summary: string;
  summarizedThroughId: string;
  usage?: Usage;
}

/** Success of get_entries. */
export interface GetEntriesSuccess {
  id?: RequestId;
  type: "response";
  command: "get_entries";
  success: true;
  data: EntryList;
}

/** Failure of get_entries. */
export interface GetEntriesFailure {
  id?: RequestId;
  type: "response";
  command: "get_entries";
  success: false;
  error: string;
  errorCode?: string;
  errorDetails?: Record<string, string>;
}

/** Response to get_entries. */
export type GetEntriesResponse = GetEntriesSuccess | GetEntriesFailure;

/** Success of get_tree. */
export interface GetTreeSuccess {
  id?: RequestId;
  type: "response";
  command: "get_tree";
  success: true;
  data: SessionTree;
}

/** Failure of get_tree. */
export interface GetTreeFailure {
  id?: RequestId;
  type: "response";
  command: "get_tree";
  success: false;
  error: string;
  errorCode?: string;
  errorDetails?: Record<string, string>;
}

/** Response to get_tree. */
export type GetTreeResponse = GetTreeSuccess | GetTreeFailure;

/** Data of `get_fork_messages`. */
export interface ForkMessageList {
  messages: ForkMessage[];
}

/** A user message, and the entry that it is. */
export interface ForkMessage {
  entryId: string;
  text: string;
}

/** Success of get_fork_messages. */
export interface GetForkMessagesSuccess {
  id?: RequestId;
  type: "response";
  command: "get_fork_messages";
  success: true;
  data: ForkMessageList;
}

/** Failure of get_fork_messages. */
export interface GetForkMessagesFailure {
  id?: RequestId;
  type: "response";
  command: "get_fork_messages";
  success: false;
  error: string;
  errorCode?: string;
  errorDetails?: Record<string, string>;
}

/** Response to get_fork_messages. */
export type GetForkMessagesResponse = GetForkMessagesSuccess | GetForkMessagesFailure;

/** Success of set_model. */
export interface SetModelSuccess {
  id?: RequestId;
  type: "response";
  command: "set_model";
  success: true;
  data: Model;
}

/** Failure of set_model. */
export interface SetModelFailure {
  id?: RequestId;
  type: "response";
  command: "set_model";
  success: false;
  error: string;
  errorCode?: string;
  errorDetails?: Record<string, string>;
}

/** Response to set_model. */
export type SetModelResponse = SetModelSuccess | SetModelFailure;

/** Data of `cycle_model`; with fewer than two candidates the data is `null`. */
export interface CycledModel {
  model: Model;
  thinkingLevel: ThinkingLevel;
  isScoped: boolean;
}

/** Success of cycle_model. */
export interface CycleModelSuccess {
  id?: RequestId;
  type: "response";
  command: "cycle_model";
  success: true;
  data: CycledModel | null;
}

/** Failure of cycle_model. */
export interface CycleModelFailure {
  id?: RequestId;
  type: "response";
  command: "cycle_model";
  success: false;
  error: string;
  errorCode?: string;
  errorDetails?: Record<string, string>;
}

/** Response to cycle_model. */
export type CycleModelResponse = CycleModelSuccess | CycleModelFailure;

/** Data of `get_available_models` and `save_provider_credential`. */
export interface Catalogue {
  models: Model[];
  scopedModels?: ScopedModel[];
  customAuthProviders?: string[];
  oauthProviders?: unknown[];
}

/** A model to cycle through, and the level that it is used with. */
export interface ScopedModel {
  model: Model;
  thinkingLevel?: ThinkingLevel;
}

/** Success of get_available_models. */
export interface GetAvailableModelsSuccess {
  id?: RequestId;
  type: "response";
  command: "get_available_models";
  success: true;
  data: Catalogue;
}

/** Failure of get_available_models. */
export interface GetAvailableModelsFailure {
  id?: RequestId;
  type: "response";
  command: "get_available_models";
  success: false;
  error: string;
  errorCode?: string;
  errorDetails?: Record<string, string>;
}

/** Response to get_available_models. */
export type GetAvailableModelsResponse = GetAvailableModelsSuccess | GetAvailableModelsFailure;

/** Data of `refresh_models`. `aborted`: the deadline passed, the models are those known so far. */
export interface RefreshedCatalogue {
  models: Model[];
  scopedModels?: ScopedModel[];
  customAuthProviders?: string[];
  oauthProviders?: unknown[];
  aborted: boolean;
  errors: RefreshError[];
}

/** What is wrong with the models of one provider. */
export interface RefreshError {
  provider: string;
  message: string;
}

/** Success of refresh_models. */
export interface RefreshModelsSuccess {
  id?: RequestId;
  type: "response";
  command: "refresh_models";
  success: true;
  data: RefreshedCatalogue;
}

/** Failure of refresh_models. */
export interface RefreshModelsFailure {
  id?: RequestId;
  type: "response";
  command: "refresh_models";
  success: false;
  error: string;
  errorCode?: string;
  errorDetails?: Record<string, string>;
}

/** Response to refresh_models. */
export type RefreshModelsResponse = RefreshModelsSuccess | RefreshModelsFailure;

/** Data of a `login_provider` that succeeded; `type` is absent after OAuth. */
export interface LoggedIn {
  models: Model[];
  scopedModels?: ScopedModel[];
  customAuthProviders?: string[];
  oauthProviders?: unknown[];
  provider: string;
  cancelled: false;
  type: "api_key";
}

/** Data of a `login_provider` that was given up. */
export interface LoginCancelled {
  provider: string;
  cancelled: true;
}

/** Success of login_provider. */
export interface LoginProviderSuccess {
  id?: RequestId;
  type: "response";
  command: "login_provider";
  success: true;
  data: LoggedIn | LoginCancelled;
}

/** Failure of login_provider. */
export interface LoginProviderFailure {
  id?: RequestId;
  type: "response";
  command: "login_provider";
  success: false;
  error: string;
  errorCode?: string;
  errorDetails?: Record<string, string>;
}

/** Response to login_provider. */
export type LoginProviderResponse = LoginProviderSuccess | LoginProviderFailure;

/** Success of save_provider_credential. */
export interface SaveProviderCredentialSuccess {
  id?: RequestId;
  type: "response";
  command: "save_provider_credential";
  success: true;
  data: Catalogue;
}

/** Failure of save_provider_credential. */
export interface SaveProviderCredentialFailure {
  id?: RequestId;
  type: "response";
  command: "save_provider_credential";
  success: false;
  error: string;
  errorCode?: string;
  errorDetails?: Record<string, string>;
}

/** Response to save_provider_credential. */
export type SaveProviderCredentialResponse = SaveProviderCredentialSuccess | SaveProviderCredentialFailure;

/** Success of cancel_login_provider. */
export interface CancelLoginProviderSuccess {
  id?: RequestId;
  type: "response";
  command: "cancel_login_provider";
  success: true;
}

/** Failure of cancel_login_provider. */
export interface CancelLoginProviderFailure {
  id?: RequestId;
  type: "response";
  command: "cancel_login_provider";
  success: false;
  error: string;
  errorCode?: string;
  errorDetails?: Record<string, string>;
}

/** Response to cancel_login_provider. */
export type CancelLoginProviderResponse = CancelLoginProviderSuccess | CancelLoginProviderFailure;

/** Data of `logout_provider`: what is left. */
export interface LoggedOut {
  provider: string;
  authStatus: AuthStatus;
  models: Model[];
  scopedModels?: ScopedModel[];
}

/** `source` says where the credential comes from, `label` names it (an environment variable, say). */
export interface AuthStatus {
  configured: boolean;
  source?: string;
  label?: string;
}

/** Success of logout_provider. */
export interface LogoutProviderSuccess {
  id?: RequestId;
  type: "response";
  command: "logout_provider";
  success: true;
  data: LoggedOut;
}

/** Failure of logout_provider. */
export interface LogoutProviderFailure {
  id?: RequestId;
  type: "response";
  command: "logout_provider";
  success: false;
  error: string;
  errorCode?: string;
  errorDetails?: Record<string, string>;
}

/** Response to logout_provider. */
export type LogoutProviderResponse = LogoutProviderSuccess | LogoutProviderFailure;

/** Data of `set_thinking_level` (with the model it was set for) and of `cycle_thinking_level` (the level alone). */
export interface EffectiveLevel {
  level: ThinkingLevel;
  provider?: string;
  modelId?: string;
}

/** Success of set_thinking_level. */
export interface SetThinkingLevelSuccess {
  id?: RequestId;
  type: "response";
  command: "set_thinking_level";
  success: true;
  data?: EffectiveLevel;
}

/** Failure of set_thinking_level. */
export interface SetThinkingLevelFailure {
  id?: RequestId;
  type: "response";
  command: "set_thinking_level";
  success: false;
  error: string;
  errorCode?: string;
  errorDetails?: Record<string, string>;
}

/** Response to set_thinking_level. */
export type SetThinkingLevelResponse = SetThinkingLevelSuccess | SetThinkingLevelFailure;

/** Success of cycle_thinking_level. */
export interface CycleThinkingLevelSuccess {
  id?: RequestId;
  type: "response";
  command: "cycle_thinking_level";
  success: true;
  data: EffectiveLevel | null;
}

/** Failure of cycle_thinking_level. */
export interface CycleThinkingLevelFailure {
  id?: RequestId;
  type: "response";
  command: "cycle_thinking_level";
  success: false;
  error: string;
  errorCode?: string;
  errorDetails?: Record<string, string>;
}

/** Response to cycle_thinking_level. */
export type CycleThinkingLevelResponse = CycleThinkingLevelSuccess | CycleThinkingLevelFailure;

/** Data of `get_available_thinking_levels`. */
export interface LevelList {
  levels: ThinkingLevel[];
}

/** Success of get_available_thinking_levels. */
export interface GetAvailableThinkingLevelsSuccess {
  id?: RequestId;
  type: "response";
  command: "get_available_thinking_levels";
  success: true;
  data: LevelList;
}

/** Failure of get_available_thinking_levels. */
export interface GetAvailableThinkingLevelsFailure {
  id?: RequestId;
  type: "response";
  command: "get_available_thinking_levels";
  success: false;
  error: string;
  errorCode?: string;
  errorDetails?: Record<string, string>;
}

/** Response to get_available_thinking_levels. */
export type GetAvailableThinkingLevelsResponse = GetAvailableThinkingLevelsSuccess | GetAvailableThinkingLevelsFailure;

/** Data of `compact`, and `result` of `compaction_end`. `firstKeptEntryId` is `null` when no message was kept. */
export interface CompactionResult {
  compactedText: string;
  firstKeptEntryId: string | null;
  tokensBefore: number;
  promptVersion: number;
  parameters: CompactionParameters;
  rung: "planned" | "extension" | "fresh";
  stats: CompactionStats;
  plannerModel?: PlannerModel;
  backupPath?: string;
}

/** Success of compact. */
export interface CompactSuccess {
  id?: RequestId;
  type: "response";
  command: "compact";
  success: true;
  data: CompactionResult;
}

/** Failure of compact. */
export interface CompactFailure {
  id?: RequestId;
  type: "response";
  command: "compact";
  success: false;
  error: string;
  errorCode?: string;
  errorDetails?: Record<string, string>;
}

/** Response to compact. */
export type CompactResponse = CompactSuccess | CompactFailure;

/** Success of abort_compaction. */
export interface AbortCompactionSuccess {
  id?: RequestId;
  type: "response";
  command: "abort_compaction";
  success: true;
}

/** Failure of abort_compaction. */
export interface AbortCompactionFailure {
  id?: RequestId;
  type: "response";
  command: "abort_compaction";
  success: false;
  error: string;
  errorCode?: string;
  errorDetails?: Record<string, string>;
}

/** Response to abort_compaction. */
export type AbortCompactionResponse = AbortCompactionSuccess | AbortCompactionFailure;

/** Success of set_auto_compaction. */
export interface SetAutoCompactionSuccess {
  id?: RequestId;
  type: "response";
  command: "set_auto_compaction";
  success: true;
}

/** Failure of set_auto_compaction. */
export interface SetAutoCompactionFailure {
  id?: RequestId;
  type: "response";
  command: "set_auto_compaction";
  success: false;
  error: string;
  errorCode?: string;
  errorDetails?: Record<string, string>;
}

/** Response to set_auto_compaction. */
export type SetAutoCompactionResponse = SetAutoCompactionSuccess | SetAutoCompactionFailure;

/** Success of set_auto_retry. */
export interface SetAutoRetrySuccess {
  id?: RequestId;
  type: "response";
  command: "set_auto_retry";
  success: true;
}

/** Failure of set_auto_retry. */
export interface SetAutoRetryFailure {
  id?: RequestId;
  type: "response";
  command: "set_auto_retry";
  success: false;
  error: string;
  errorCode?: string;
  errorDetails?: Record<string, string>;
}

/** Response to set_auto_retry. */
export type SetAutoRetryResponse = SetAutoRetrySuccess | SetAutoRetryFailure;

/** Success of abort_retry. */
export interface AbortRetrySuccess {
  id?: RequestId;
  type: "response";
  command: "abort_retry";
  success: true;
}

/** Failure of abort_retry. */
export interface AbortRetryFailure {
  id?: RequestId;
  type: "response";
  command: "abort_retry";
  success: false;
  error: string;
  errorCode?: string;
  errorDetails?: Record<string, string>;
}

/** Response to abort_retry. */
export type AbortRetryResponse = AbortRetrySuccess | AbortRetryFailure;

/**
 * Data of `bash` and `user_bash`. `exitCode` is absent after a signal; `fullOutputPath` is absent unless the output was
 * truncated, and `null` when it could not be kept.
 */
export interface BashResult {
  output: string;
  cancelled: boolean;
  truncated: boolean;
  exitCode?: number;
  fullOutputPath?: string | null;
}

/** Success of bash. */
export interface BashSuccess {
  id?: RequestId;
  type: "response";
  command: "bash";
  success: true;
  data: BashResult;
}

/** Failure of bash. */
export interface BashFailure {
  id?: RequestId;
  type: "response";
  command: "bash";
  success: false;
  error: string;
  errorCode?: string;
  errorDetails?: Record<string, string>;
}

/** Response to bash. */
export type BashResponse = BashSuccess | BashFailure;

/** Success of user_bash. */
export interface UserBashSuccess {
  id?: RequestId;
  type: "response";
  command: "user_bash";
  success: true;
  data: BashResult;
}

/** Failure of user_bash. */
export interface UserBashFailure {
  id?: RequestId;
  type: "response";
  command: "user_bash";
  success: false;
  error: string;
  errorCode?: string;
  errorDetails?: Record<string, string>;
}

/** Response to user_bash. */
export type UserBashResponse = UserBashSuccess | UserBashFailure;

/** Success of abort_bash. */
export interface AbortBashSuccess {
  id?: RequestId;
  type: "response";
  command: "abort_bash";
  success: true;
}

/** Failure of abort_bash. */
export interface AbortBashFailure {
  id?: RequestId;
  type: "response";
  command: "abort_bash";
  success: false;
  error: string;
  errorCode?: string;
  errorDetails?: Record<string, string>;
}

/** Response to abort_bash. */
export type AbortBashResponse = AbortBashSuccess | AbortBashFailure;

/** Success of get_tasks. */
export interface GetTasksSuccess {
  id?: RequestId;
  type: "response";
  command: "get_tasks";
  success: true;
}

/** Failure of get_tasks. */
export interface GetTasksFailure {
  id?: RequestId;
  type: "response";
  command: "get_tasks";
  success: false;
  error: string;
  errorCode?: string;
  errorDetails?: Record<string, string>;
}

/** Response to get_tasks. */
export type GetTasksResponse = GetTasksSuccess | GetTasksFailure;

/** Success of get_task. */
export interface GetTaskSuccess {
  id?: RequestId;
  type: "response";
  command: "get_task";
  success: true;
}

/** Failure of get_task. */
export interface GetTaskFailure {
  id?: RequestId;
  type: "response";
  command: "get_task";
  success: false;
  error: string;
  errorCode?: string;
  errorDetails?: Record<string, string>;
}

/** Response to get_task. */
export type GetTaskResponse = GetTaskSuccess | GetTaskFailure;

/** Success of cancel_task. */
export interface CancelTaskSuccess {
  id?: RequestId;
  type: "response";
  command: "cancel_task";
  success: true;
}

/** Failure of cancel_task. */
export interface CancelTaskFailure {
  id?: RequestId;
  type: "response";
  command: "cancel_task";
  success: false;
  error: string;
  errorCode?: string;
  errorDetails?: Record<string, string>;
}

/** Response to cancel_task. */
export type CancelTaskResponse = CancelTaskSuccess | CancelTaskFailure;

/** Success of send_task_input. */
export interface SendTaskInputSuccess {
  id?: RequestId;
  type: "response";
  command: "send_task_input";
  success: true;
}

/** Failure of send_task_input. */
export interface SendTaskInputFailure {
  id?: RequestId;
  type: "response";
  command: "send_task_input";
  success: false;
  error: string;
  errorCode?: string;
  errorDetails?: Record<string, string>;
}

/** Response to send_task_input. */
export type SendTaskInputResponse = SendTaskInputSuccess | SendTaskInputFailure;

/** Success of resize_task. */
export interface ResizeTaskSuccess {
  id?: RequestId;
  type: "response";
  command: "resize_task";
  success: true;
}

/** Failure of resize_task. */
export interface ResizeTaskFailure {
  id?: RequestId;
  type: "response";
  command: "resize_task";
  success: false;
  error: string;
  errorCode?: string;
  errorDetails?: Record<string, string>;
}

/** Response to resize_task. */
export type ResizeTaskResponse = ResizeTaskSuccess | ResizeTaskFailure;

/** Success of wait_task. */
export interface WaitTaskSuccess {
  id?: RequestId;
  type: "response";
  command: "wait_task";
  success: true;
}

/** Failure of wait_task. */
export interface WaitTaskFailure {
  id?: RequestId;
  type: "response";
  command: "wait_task";
  success: false;
  error: string;
  errorCode?: string;
  errorDetails?: Record<string, string>;
}

/** Response to wait_task. */
export type WaitTaskResponse = WaitTaskSuccess | WaitTaskFailure;

/** Success of set_task_subscription. */
export interface SetTaskSubscriptionSuccess {
  id?: RequestId;
  type: "response";
  command: "set_task_subscription";
  success: true;
}

/** Failure of set_task_subscription. */
export interface SetTaskSubscriptionFailure {
  id?: RequestId;
  type: "response";
  command: "set_task_subscription";
  success: false;
  error: string;
  errorCode?: string;
  errorDetails?: Record<string, string>;
}

/** Response to set_task_subscription. */
export type SetTaskSubscriptionResponse = SetTaskSubscriptionSuccess | SetTaskSubscriptionFailure;

/** Data of `new_session`, `switch_session`, `import_session` and `clone`. */
export interface Cancelled {
  cancelled: boolean;
}

/** Success of new_session. */
export interface NewSessionSuccess {
  id?: RequestId;
  type: "response";
  command: "new_session";
  success: true;
  data: Cancelled;
}

/** Failure of new_session. */
export interface NewSessionFailure {
  id?: RequestId;
  type: "response";
  command: "new_session";
  success: false;
  error: string;
  errorCode?: string;
  errorDetails?: Record<string, string>;
}

/** Response to new_session. */
export type NewSessionResponse = NewSessionSuccess | NewSessionFailure;

/** Success of switch_session. */
export interface SwitchSessionSuccess {
  id?: RequestId;
  type: "response";
  command: "switch_session";
  success: true;
  data: Cancelled;
}

/** Failure of switch_session. */
export interface SwitchSessionFailure {
  id?: RequestId;
  type: "response";
  command: "switch_session";
  success: false;
  error: string;
  errorCode?: string;
  errorDetails?: Record<string, string>;
}

/** Response to switch_session. */
export type SwitchSessionResponse = SwitchSessionSuccess | SwitchSessionFailure;

/** Success of import_session. */
export interface ImportSessionSuccess {
  id?: RequestId;
  type: "response";
  command: "import_session";
  success: true;
  data: Cancelled;
}

/** Failure of import_session. */
export interface ImportSessionFailure {
  id?: RequestId;
  type: "response";
  command: "import_session";
  success: false;
  error: string;
  errorCode?: string;
  errorDetails?: Record<string, string>;
}

/** Response to import_session. */
export type ImportSessionResponse = ImportSessionSuccess | ImportSessionFailure;

/** Data of `fork`; `text` is that of the message, to be changed. */
export interface Forked {
  cancelled: boolean;
  text?: string;
}

/** Success of fork. */
export interface ForkSuccess {
  id?: RequestId;
  type: "response";
  command: "fork";
  success: true;
  data: Forked;
}

/** Failure of fork. */
export interface ForkFailure {
  id?: RequestId;
  type: "response";
  command: "fork";
  success: false;
  error: string;
  errorCode?: string;
  errorDetails?: Record<string, string>;
}

/** Response to fork. */
export type ForkResponse = ForkSuccess | ForkFailure;

/** Success of clone. */
export interface CloneSuccess {
  id?: RequestId;
  type: "response";
  command: "clone";
  success: true;
  data: Cancelled;
}

/** Failure of clone. */
export interface CloneFailure {
  id?: RequestId;
  type: "response";
  command: "clone";
  success: false;
  error: string;
  errorCode?: string;
  errorDetails?: Record<string, string>;
}

/** Response to clone. */
export type CloneResponse = CloneSuccess | CloneFailure;

/** Success of set_session_name. */
export interface SetSessionNameSuccess {
  id?: RequestId;
  type: "response";
  command: "set_session_name";
  success: true;
}

/** Failure of set_session_name. */
export interface SetSessionNameFailure {
  id?: RequestId;
  type: "response";
  command: "set_session_name";
  success: false;
  error: string;
  errorCode?: string;
  errorDetails?: Record<string, string>;
}

/** Response to set_session_name. */
export type SetSessionNameResponse = SetSessionNameSuccess | SetSessionNameFailure;

/**
 * Data of `navigate_tree`; `editorText` is the user message there, to be changed. `aborted` tells that the summary of
 * the branch was cancelled, so that nothing has moved.
 */
export interface Navigated {
  cancelled: boolean;
  editorText?: string;
  aborted?: boolean;
}

/** Success of navigate_tree. */
export interface NavigateTreeSuccess {
  id?: RequestId;
  type: "response";
  command: "navigate_tree";
  success: true;
  data: Navigated;
}

/** Failure of navigate_tree. */
export interface NavigateTreeFailure {
  id?: RequestId;
  type: "response";
  command: "navigate_tree";
  success: false;
  error: string;
  errorCode?: string;
  errorDetails?: Record<string, string>;
}

/** Response to navigate_tree. */
export type NavigateTreeResponse = NavigateTreeSuccess | NavigateTreeFailure;

/** Success of set_label. */
export interface SetLabelSuccess {
  id?: RequestId;
  type: "response";
  command: "set_label";
  success: true;
}

/** Failure of set_label. */
export interface SetLabelFailure {
  id?: RequestId;
  type: "response";
  command: "set_label";
  success: false;
  error: string;
  errorCode?: string;
  errorDetails?: Record<string, string>;
}

/** Response to set_label. */
export type SetLabelResponse = SetLabelSuccess | SetLabelFailure;

/** Data of `export_html`. */
export interface ExportedPath {
  path: string;
}

/** Success of export_html. */
export interface ExportHtmlSuccess {
  id?: RequestId;
  type: "response";
  command: "export_html";
  success: true;
  data: ExportedPath;
}

/** Failure of export_html. */
export interface ExportHtmlFailure {
  id?: RequestId;
  type: "response";
  command: "export_html";
  success: false;
  error: string;
  errorCode?: string;
  errorDetails?: Record<string, string>;
}

/** Response to export_html. */
export type ExportHtmlResponse = ExportHtmlSuccess | ExportHtmlFailure;

/** Success of reload. */
export interface ReloadSuccess {
  id?: RequestId;
  type: "response";
  command: "reload";
  success: true;
}

/** Failure of reload. */
export interface ReloadFailure {
  id?: RequestId;
  type: "response";
  command: "reload";
  success: false;
  error: string;
  errorCode?: string;
  errorDetails?: Record<string, string>;
}

/** Response to reload. */
export type ReloadResponse = ReloadSuccess | ReloadFailure;

/** Data of `get_commands`. */
export interface SlashCommandList {
  commands: SlashCommand[];
}

/** What a prompt can call as `/name`. `location` is absent for extensions. */
export interface SlashCommand {
  name: string;
  source: "extension" | "prompt" | "skill";
  description?: string;
  location?: "user" | "project" | "path";
  path?: string;
  hasArgumentCompletions?: boolean;
  sourceInfo?: SourceInfo;
}

/** Where a command comes from. */
export interface SourceInfo {
  path: string;
  source: string;
  scope: "user" | "project" | "temporary";
  origin: "package" | "top-level";
  baseDir?: string;
  configurationOrigin?: unknown;
}

/** Success of get_commands. */
export interface GetCommandsSuccess {
  id?: RequestId;
  type: "response";
  command: "get_commands";
  success: true;
  data: SlashCommandList;
}

/** Failure of get_commands. */
export interface GetCommandsFailure {
  id?: RequestId;
  type: "response";
  command: "get_commands";
  success: false;
  error: string;
  errorCode?: string;
  errorDetails?: Record<string, string>;
}

/** Response to get_commands. */
export type GetCommandsResponse = GetCommandsSuccess | GetCommandsFailure;

/** Data of `get_command_completions`; `null` when nobody completes the command. */
export interface CompletionList {
  completions: Completion[] | null;
}

/** One way to go on: `value` is to be typed, `label` to be shown. */
export interface Completion {
  value: string;
  label: string;
  description?: string;
}

/** Success of get_command_completions. */
export interface GetCommandCompletionsSuccess {
  id?: RequestId;
  type: "response";
  command: "get_command_completions";
  success: true;
  data: CompletionList;
}

/** Failure of get_command_completions. */
export interface GetCommandCompletionsFailure {
  id?: RequestId;
  type: "response";
  command: "get_command_completions";
  success: false;
  error: string;
  errorCode?: string;
  errorDetails?: Record<string, string>;
}

/** Response to get_command_completions. */
export type GetCommandCompletionsResponse = GetCommandCompletionsSuccess | GetCommandCompletionsFailure;

/** Data of `get_shortcuts`. */
export interface ShortcutList {
  shortcuts: Shortcut[];
}

/** A key, and what it does. */
export interface Shortcut {
  key: string;
  description?: string;
}

/** Success of get_shortcuts. */
export interface GetShortcutsSuccess {
  id?: RequestId;
  type: "response";
  command: "get_shortcuts";
  success: true;
  data: ShortcutList;
}

/** Failure of get_shortcuts. */
export interface GetShortcutsFailure {
  id?: RequestId;
  type: "response";
  command: "get_shortcuts";
  success: false;
  error: string;
  errorCode?: string;
  errorDetails?: Record<string, string>;
}

/** Response to get_shortcuts. */
export type GetShortcutsResponse = GetShortcutsSuccess | GetShortcutsFailure;

/** Success of invoke_shortcut. */
export interface InvokeShortcutSuccess {
  id?: RequestId;
  type: "response";
  command: "invoke_shortcut";
  success: true;
}

/** Failure of invoke_shortcut. */
export interface InvokeShortcutFailure {
  id?: RequestId;
  type: "response";
  command: "invoke_shortcut";
  success: false;
  error: string;
  errorCode?: string;
  errorDetails?: Record<string, string>;
}

/** Response to invoke_shortcut. */
export type InvokeShortcutResponse = InvokeShortcutSuccess | InvokeShortcutFailure;

/**
 * The response to what is no command: `command` is `parse` when the line is no JSON, the `type` when nobody knows it,
 * and absent when there is none.
 */
export interface RejectedResponse {
  id?: RequestId;
  type: "response";
  command?: string;
  success: false;
  error: string;
}

/** Exactly one for each command. */
export type Response =
  | PromptResponse
  | SteerResponse
  | FollowUpResponse
  | AbortResponse
  | ClearQueueResponse
  | PauseQueuedMessagesResponse
  | ResumeQueuedMessagesResponse
  | SetSteeringModeResponse
  | SetFollowUpModeResponse
  | GetStateResponse
  | GetMessagesResponse
  | GetSessionStatsResponse
  | GetLastAssistantTextResponse
  | GetEntriesResponse
  | GetTreeResponse
  | GetForkMessagesResponse
  | SetModelResponse
  | CycleModelResponse
  | GetAvailableModelsResponse
  | RefreshModelsResponse
  | LoginProviderResponse
  | SaveProviderCredentialResponse
  | CancelLoginProviderResponse
  | LogoutProviderResponse
  | SetThinkingLevelResponse
  | CycleThinkingLevelResponse
  | GetAvailableThinkingLevelsResponse
  | CompactResponse
  | AbortCompactionResponse
  | SetAutoCompactionResponse
  | SetAutoRetryResponse
  | AbortRetryResponse
  | BashResponse
  | UserBashResponse
  | AbortBashResponse
  | GetTasksResponse
  | GetTaskResponse
  | CancelTaskResponse
  | SendTaskInputResponse
  | ResizeTaskResponse
  | WaitTaskResponse
  | SetTaskSubscriptionResponse
  | NewSessionResponse
  | SwitchSessionResponse
  | ImportSessionResponse
  | ForkResponse
  | CloneResponse
  | SetSessionNameResponse
  | NavigateTreeResponse
  | SetLabelResponse
  | ExportHtmlResponse
  | ReloadResponse
  | GetCommandsResponse
  | GetCommandCompletionsResponse
  | GetShortcutsResponse
  | InvokeShortcutResponse
  | RejectedResponse;

export type Event =
  | AgentStartEvent
  | AgentEndEvent
  | AgentSettledEvent
  | TurnStartEvent
  | TurnEndEvent
  | MessageStartEvent
  | MessageUpdateEvent
  | MessageEndEvent
  | ToolExecutionStartEvent
  | ToolExecutionUpdateEvent
  | ToolExecutionEndEvent
  | QueueUpdateEvent
  | BashExecutionUpdateEvent
  | TaskUpdateEvent
  | TaskTranscriptEvent
  | SessionInfoChangedEvent
  | EntryAppendedEvent
  | ModelChangedEvent
  | ThinkingLevelChangedEvent
  | ModelFallbackStartEvent
  | ModelFallbackEndEvent
  | AutoRetryStartEvent
  | AutoRetryEndEvent
  | CompactionStartEvent
  | CompactionEndEvent
  | SummarizationRetryScheduledEvent
  | SummarizationRetryAttemptStartEvent
  | SummarizationRetryFinishedEvent
  | AgentContinueErrorEvent
  | ExtensionErrorEvent;

/**
 * Event agent_start.
 * A run begins.
 */
export interface AgentStartEvent {
  type: "agent_start";
}

/**
 * Event agent_end.
 * A run is over. `messages` are those of this run only; what follows on its own is another run. `willRetry`, told with
 * `--rpc-compat pi`, says that the next one repeats the request that failed, on this model or on another.
 */
export interface AgentEndEvent {
  type: "agent_end";
  messages: Message[];
  willRetry?: boolean;
}

/**
 * Event agent_settled.
 * Nothing more comes by itself: no retry, no compaction, no queued message.
 */
export interface AgentSettledEvent {
  type: "agent_settled";
}

/**
 * Event turn_start.
 * A request to the model begins; a run has one or more.
 */
export interface TurnStartEvent {
  type: "turn_start";
}

/**
 * Event turn_end.
 * The reply of the model, and the results of its tools.
 */
export interface TurnEndEvent {
  type: "turn_end";
  message: Message;
  toolResults: ToolResultMessage[];
}

/**
 * Event message_start.
 * A message begins. That of a reply grows by `message_update`.
 */
export interface MessageStartEvent {
  type: "message_start";
  message: Message;
}

/**
 * Event message_update.
 * One delta of a streaming reply; never the message so far. `usage` is the latest the provider told.
 */
export interface MessageUpdateEvent {
  type: "message_update";
  usage: Usage;
  assistantMessageEvent: AssistantMessageEvent;
  endTurn?: boolean;
}

export type AssistantMessageEvent =
  | TextStart
  | TextDelta
  | TextEnd
  | ThinkingStart
  | ThinkingDelta
  | ThinkingEnd
  | ToolCallStart
  | ToolCallDelta
  | ToolCallEnd
  | StreamStart
  | StreamDone
  | StreamError;

/** A text block begins. `contentIndex` is its place in `content` of the message. */
export interface TextStart {
  type: "text_start";
  contentIndex: number;
}

/** More of a text block. */
export interface TextDelta {
  type: "text_delta";
  contentIndex: number;
  delta: string;
}

/** A text block is whole. */
export interface TextEnd {
  type: "text_end";
  contentIndex: number;
  content: string;
}

/** A thinking block begins. */
export interface ThinkingStart {
  type: "thinking_start";
  contentIndex: number;
}

/** More of a thinking block. */
export interface ThinkingDelta {
  type: "thinking_delta";
  contentIndex: number;
  delta: string;
}

/** A thinking block is whole. */
export interface ThinkingEnd {
  type: "thinking_end";
  contentIndex: number;
  content: string;
}

/** A tool call begins. */
export interface ToolCallStart {
  type: "toolcall_start";
  contentIndex: number;
}

/** More of a tool call's arguments, as JSON text. */
export interface ToolCallDelta {
  type: "toolcall_delta";
  contentIndex: number;
  delta: string;
}

/** A tool call is whole. */
export interface ToolCallEnd {
  type: "toolcall_end";
  contentIndex: number;
  toolCall: ToolCall;
}

/** Listed by the contract; the runtime sends `message_start` instead. */
export interface StreamStart {
  type: "start";
}

/** Listed by the contract; the runtime sends `message_end` instead. */
export interface StreamDone {
  type: "done";
  reason: "stop" | "length" | "toolUse";
}

/** Listed by the contract; the runtime sends `message_end` instead. */
export interface StreamError {
  type: "error";
  reason: "aborted" | "error";
}

/**
 * Event message_end.
 * A message is whole; this is what counts.
 */
export interface MessageEndEvent {
  type: "message_end";
  message: Message;
}

/**
 * Event tool_execution_start.
 * A tool begins to work.
 */
export interface ToolExecutionStartEvent {
  type: "tool_execution_start";
  toolCallId: string;
  toolName: string;
  args: unknown;
}

/**
 * Event tool_execution_update.
 * `partialResult` is the whole result so far; it replaces what was shown.
 */
export interface ToolExecutionUpdateEvent {
  type: "tool_execution_update";
  toolCallId: string;
  toolName: string;
  args: unknown;
  partialResult: ToolExecutionResult;
}

/** What a tool gave: all of it, or all so far. `details` is any JSON value; each tool has its own. */
export interface ToolExecutionResult {
  content: UserContent[];
  details?: unknown;
}

/**
 * Event tool_execution_end.
 * A tool has ended.
 */
export interface ToolExecutionEndEvent {
  type: "tool_execution_end";
  toolCallId: string;
  toolName: string;
  result: ToolExecutionResult;
  isError: boolean;
}

/**
 * Event queue_update.
 * What is queued now.
 */
export interface QueueUpdateEvent {
  type: "queue_update";
  steering: string[];
  followUp: string[];
}

/**
 * Event bash_execution_update.
 * `id` is the request's own id, any JSON scalar; absent when the request had none.
 */
export interface BashExecutionUpdateEvent {
  type: "bash_execution_update";
  channel: "stdout" | "stderr";
  delta: string;
  id?: RequestId;
}

/**
 * Event task_update.
 * A task as it is now; only after `set_task_subscription`.
 */
export interface TaskUpdateEvent {
  type: "task_update";
  task: TaskRecord;
}

/**
 * One task as its owner sees it now. `state` sums up the axes for people. `activityState` is a hint about an agent: it
 * is silent or its changes fail, or it has been at work for four minutes.
 */
export interface TaskRecord {
  ref: TaskRef;
  launchOrdinal: number;
  kind: "agent" | "command";
  title: string;
  state: "queued" | "running" | "inputNeeded" | "stopping" | "completed" | "failed" | "stopped";
  execution: Queued | Running | Cancelling | Settled;
  observation: Foreground | Background | Unobserved;
  cleanup: CleanupActive | CleanupDraining | CleanupReaped | CleanupFailed;
  attention: Attention;
  wasBackground?: boolean;
  output?: OutputRef;
  parentTaskId?: string;
  launchGroupId?: string;
  agentName?: string;
  model?: string;
  thinking?: string;
  currentAction?: Action;
  metrics?: Metrics;
  acceptsInput?: boolean;
  activityState?: "needs_attention" | "active_long_running";
}

/** Data, never authority: whoever knows these may still only reach the tasks of its own owner. */
export interface TaskRef {
  ownerId: string;
  taskId: string;
  attemptId: string;
  generation: string;
}

/** Admitted, waits for room to run. */
export interface Queued {
  kind: "queued";
}

export interface Running {
  kind: "running";
}

/** Told to stop, and not known to have stopped. */
export interface Cancelling {
  kind: "cancelling";
  cause: "user" | "owner-close" | "execution-timeout" | "output-limit" | "parent-handoff" | "shutdown";
}

export interface Settled {
  kind: "settled";
  result: TaskCompleted | TaskFailed | TaskCancelled;
}

/** It ran to its end. A command's exit code may be any. */
export interface TaskCompleted {
  kind: "completed";
  output?: OutputRef;
  exitCode?: number;
}

/** What a command has put out so far; `byteCount` counts all of it, kept or not. */
export interface OutputRef {
  ownerId: string;
  taskId: string;
  artifactId: string;
  byteCount: string;
  omittedRanges?: OmittedRange[];
}

/** Bytes of the original stream that are no longer kept: from `start` up to, not including, `end`. */
export interface OmittedRange {
  start: string;
  end: string;
}

/** `code` is SpawnFailed, OutputLimitExceeded, CommandKilled, RunnerFailed or AgentFailed. */
export interface TaskFailed {
  kind: "failed";
  code: string;
  message: string;
  output?: OutputRef;
  exitCode?: number;
}

/** It was stopped; `cause` is the first one, whatever came after it. */
export interface TaskCancelled {
  kind: "cancelled";
  cause: "user" | "owner-close" | "execution-timeout" | "output-limit" | "parent-handoff" | "shutdown";
  output?: OutputRef;
}

/** The parent waits for it. */
export interface Foreground {
  kind: "foreground";
  waitId: string;
}

/** It runs while the parent does something else. */
export interface Background {
  kind: "background";
  reason: "explicit" | "default-background" | "elapsed" | "input-needed" | "intercom-coordination" | "not-observed" | "observer-cancelled";
}

export interface Unobserved {
  kind: "none";
  reason: "task-settled" | "owner-closing";
}

/** What it started is in use. */
export interface CleanupActive {
  kind: "active";
}

/** What it started is being ended. */
export interface CleanupDraining {
  kind: "draining";
}

/** Nothing that it started is left. */
export interface CleanupReaped {
  kind: "reaped";
}

/** What could not be ended in time; it may still become reaped. */
export interface CleanupFailed {
  kind: "failed";
  resources: string[];
}

/**
 * For the eye alone. `requestIds` name the questions that are open with `input-needed`; `no-recent-activity` says that
 * an agent has been silent for a minute.
 */
export interface Attention {
  kind?: "none" | "input-needed" | "no-recent-activity";
  requestIds?: string[];
}

/** The tool that a subagent uses now, and a line about it. */
export interface Action {
  tool: string;
  text?: string;
}

/**
 * What is known; a zero that was reported stays, what was never reported is left out. `elapsedMs` is counted from when
 * the task began to run, up to this record or its end.
 */
export interface Metrics {
  elapsedMs?: number;
  toolCount?: number;
  tokenCount?: number;
}

/**
 * Event task_transcript.
 * What a subagent has said since the last of these, from the entry `first` on, and what it is saying; only for the one
 * that `set_task_subscription` names, and at most ten times a second.
 */
export interface TaskTranscriptEvent {
  type: "task_transcript";
  taskId: string;
  first: number;
  entries: TranscriptEntry[];
  live?: TranscriptEntry;
}

/**
 * One piece of a subagent's conversation. `index` counts from 0 in the order in which it was said; `text` is the
 * arguments of a `toolCall` as JSON, and has `[image]` in the place of an image. A longer text is cut and says so.
 */
export interface TranscriptEntry {
  index: number;
  role: "user" | "assistant" | "toolCall" | "toolResult" | "notice";
  text: string;
  tool?: string;
  toolCallId?: string;
  isError?: boolean;
  timestamp?: number;
}

/**
 * Event session_info_changed.
 * The session has another name; without `name` it has none.
 */
export interface SessionInfoChangedEvent {
  type: "session_info_changed";
  name?: string;
}

/**
 * Event entry_appended.
 * An entry was added to the session's file.
 */
export interface EntryAppendedEvent {
  type: "entry_appended";
  entry: Entry;
}

/**
 * Event model_changed.
 * The session has another model.
 */
export interface ModelChangedEvent {
  type: "model_changed";
  model: Model;
  source: "set" | "cycle" | "restore" | "fallback";
  previousModel?: Model;
}

/**
 * Event thinking_level_changed.
 * The session has another thinking level.
 */
export interface ThinkingLevelChangedEvent {
  type: "thinking_level_changed";
  level: ThinkingLevel;
}

/**
 * Event model_fallback_start.
 * Another model takes over.
 */
export interface ModelFallbackStartEvent {
  type: "model_fallback_start";
  to: string;
  reason: string;
  attempt: number;
  from?: string;
}

/**
 * Event model_fallback_end.
 * The first model is back; `success` tells whether another one did it.
 */
export interface ModelFallbackEndEvent {
  type: "model_fallback_end";
  success: boolean;
  from?: string;
  to?: string;
  finalError?: string;
}

/**
 * Event auto_retry_start.
 * The run failed; it is tried again in `delayMs` milliseconds.
 */
export interface AutoRetryStartEvent {
  type: "auto_retry_start";
  attempt: number;
  maxAttempts: number;
  delayMs: number;
  errorMessage: string;
}

/**
 * Event auto_retry_end.
 * The retries are over; `success` tells whether the last one did it.
 */
export interface AutoRetryEndEvent {
  type: "auto_retry_end";
  success: boolean;
  attempt: number;
  finalError?: string;
}

/**
 * Event compaction_start.
 * The context is being shortened.
 */
export interface CompactionStartEvent {
  type: "compaction_start";
  reason: CompactionReason;
  midTurn?: boolean;
}

export type CompactionReason = "manual" | "threshold" | "overflow";

/**
 * Event compaction_end.
 * `result` is a `CompactionResult` or `null`. It and `errorMessage` are independent: a committed boundary may be
 * followed by a failure.
 */
export interface CompactionEndEvent {
  type: "compaction_end";
  reason: CompactionReason;
  result: CompactionResult | null;
  aborted: boolean;
  willRetry: boolean;
  errorMessage?: string;
  unresolvedOverflow?: boolean;
  midTurn?: boolean;
  manualTakeoverPending?: boolean;
}

/**
 * Event summarization_retry_scheduled.
 * A request for a compaction or summary failed; it is tried again in `delayMs` milliseconds.
 */
export interface SummarizationRetryScheduledEvent {
  type: "summarization_retry_scheduled";
  attempt: number;
  maxAttempts: number;
  delayMs: number;
  errorMessage: string;
}

/**
 * Event summarization_retry_attempt_start.
 * A request for a compaction or summary is tried again. Of a branch summary there is no `reason`.
 */
export interface SummarizationRetryAttemptStartEvent {
  type: "summarization_retry_attempt_start";
  source: "compaction" | "branchSummary";
  reason?: CompactionReason;
}

/**
 * Event summarization_retry_finished.
 * The retries of a compaction or summary are over.
 */
export interface SummarizationRetryFinishedEvent {
  type: "summarization_retry_finished";
}

/**
 * Event agent_continue_error.
 * The run could not go on after a compaction.
 */
export interface AgentContinueErrorEvent {
  type: "agent_continue_error";
  source: "post_compaction";
  errorMessage: string;
}

/**
 * Event extension_error.
 * Code of an extension, a skill or a command failed.
 */
export interface ExtensionErrorEvent {
  type: "extension_error";
  extensionPath: string;
  event: string;
  error: string;
}

/** `cwd` and `parentSession` are absolute paths. `internal` and `workflow` are written both or neither. */
export interface SessionHeader {
  type: "session";
  version?: number;
  id: string;
  timestamp: string;
  cwd: string;
  parentSession?: string;
  internal?: boolean;
  workflow?: WorkflowStage;
}

/** Which stage of which workflow run a session belongs to. */
export interface WorkflowStage {
  runId: string;
  stageId: string;
  stageName: string;
}

/** An entry of another type, from another program or an older version: passed on as it stands. */
export interface OtherEntry {
  type: string;
  id: string;
}

/** A line of a session file; the first is the header. */
export type SessionLine = SessionHeader | Entry;

export type ExtensionUiRequest =
  | UiSelect
  | UiConfirm
  | UiInput
  | UiEditor
  | UiNotify
  | UiSetStatus
  | UiSetWidget
  | UiSetTitle
  | UiSetEditorText
  | OAuthAuth
  | OAuthDeviceCode
  | OAuthProgress
  | OAuthInfo
  | OAuthManualCodeCancel
  | OAuthPrompt
  | OAuthSelect
  | OAuthManualCode;

/** The user is to choose one of `options`; the answer's `value` is the chosen one. */
export interface UiSelect {
  method: "select";
  title: string;
  options: string[];
  timeout?: number;
  type: "extension_ui_request";
  id: string;
}

/** A question of yes or no; the answer has `confirmed`. */
export interface UiConfirm {
  method: "confirm";
  title: string;
  message: string;
  timeout?: number;
  type: "extension_ui_request";
  id: string;
}

/** The user is to type one line; the answer has `value`. */
export interface UiInput {
  method: "input";
  title: string;
  placeholder?: string;
  timeout?: number;
  type: "extension_ui_request";
  id: string;
}

/** The user is to write or change a text; the answer has `value`. It has no time limit. */
export interface UiEditor {
  method: "editor";
  title: string;
  prefill?: string;
  type: "extension_ui_request";
  id: string;
}

/** A note for the user; no answer. */
export interface UiNotify {
  method: "notify";
  message: string;
  notifyType?: string;
  type: "extension_ui_request";
  id: string;
}

/** The status text under `statusKey`; without `statusText` it is taken away. */
export interface UiSetStatus {
  method: "setStatus";
  statusKey: string;
  statusText?: string;
  type: "extension_ui_request";
  id: string;
}

/** The lines of the widget `widgetKey`; without `widgetLines` it is taken away. */
export interface UiSetWidget {
  method: "setWidget";
  widgetKey: string;
  widgetLines?: string[];
  widgetPlacement?: string;
  type: "extension_ui_request";
  id: string;
}

/** The title of the client's window. */
export interface UiSetTitle {
  method: "setTitle";
  title: string;
  type: "extension_ui_request";
  id: string;
}

/** What the client's input field shall hold. */
export interface UiSetEditorText {
  method: "set_editor_text";
  text: string;
  type: "extension_ui_request";
  id: string;
}

/** The page on which the user logs in; no answer. */
export interface OAuthAuth {
  method: "oauth_auth";
  provider: string;
  loginId: string;
  type: "extension_ui_request";
  id: string;
}

/** The code that the user enters elsewhere; no answer. */
export interface OAuthDeviceCode {
  method: "oauth_device_code";
  provider: string;
  loginId: string;
  type: "extension_ui_request";
  id: string;
}

/** How far the login is; no answer. */
export interface OAuthProgress {
  method: "oauth_progress";
  provider: string;
  loginId: string;
  type: "extension_ui_request";
  id: string;
}

/** A note about the login; no answer. */
export interface OAuthInfo {
  method: "oauth_info";
  provider: string;
  loginId: string;
  type: "extension_ui_request";
  id: string;
}

/** A code is no longer asked for; no answer. */
export interface OAuthManualCodeCancel {
  method: "oauth_manual_code_cancel";
  provider: string;
  loginId: string;
  type: "extension_ui_request";
  id: string;
}

/** The login needs a text from the user; the answer has `value`. */
export interface OAuthPrompt {
  method: "oauth_prompt";
  provider: string;
  loginId: string;
  type: "extension_ui_request";
  id: string;
}

/** The login needs a choice of the user; the answer has `value`. */
export interface OAuthSelect {
  method: "oauth_select";
  provider: string;
  loginId: string;
  type: "extension_ui_request";
  id: string;
}

/** The login needs a code that the user has; the answer has `value`. */
export interface OAuthManualCode {
  method: "oauth_manual_code";
  provider: string;
  loginId: string;
  type: "extension_ui_request";
  id: string;
}

/**
 * The client's answer to a dialog. It is no command: nothing responds to it. Its fields are not checked, since an
 * answer of the wrong shape counts as the dialog's default.
 */
export interface ExtensionUiResponse {
  type: "extension_ui_response";
  value?: unknown;
  confirmed?: unknown;
  cancelled?: unknown;
  id: string;
}

export type UiFrame = ExtensionUiRequest | ExtensionUiResponse;

/** A line of stdin. */
export type ClientRecord = Command | ExtensionUiResponse;

/** A line of stdout. */
export type AgentRecord = Response | Event | ExtensionUiRequest;

export type Line = ClientRecord | AgentRecord | SessionLine;

/** A command by its `type`, and what answers it: `Responses[T]` is the response to `Commands[T]`. */
export interface Commands {
  prompt: PromptCommand;
  steer: SteerCommand;
  follow_up: FollowUpCommand;
  abort: AbortCommand;
  clear_queue: ClearQueueCommand;
  pause_queued_messages: PauseQueuedMessagesCommand;
  resume_queued_messages: ResumeQueuedMessagesCommand;
  set_steering_mode: SetSteeringModeCommand;
  set_follow_up_mode: SetFollowUpModeCommand;
  get_state: GetStateCommand;
  get_messages: GetMessagesCommand;
  get_session_stats: GetSessionStatsCommand;
  get_last_assistant_text: GetLastAssistantTextCommand;
  get_entries: GetEntriesCommand;
  get_tree: GetTreeCommand;
  get_fork_messages: GetForkMessagesCommand;
  set_model: SetModelCommand;
  cycle_model: CycleModelCommand;
  get_available_models: GetAvailableModelsCommand;
  refresh_models: RefreshModelsCommand;
  login_provider: LoginProviderCommand;
  save_provider_credential: SaveProviderCredentialCommand;
  cancel_login_provider: CancelLoginProviderCommand;
  logout_provider: LogoutProviderCommand;
  set_thinking_level: SetThinkingLevelCommand;
  cycle_thinking_level: CycleThinkingLevelCommand;
  get_available_thinking_levels: GetAvailableThinkingLevelsCommand;
  compact: CompactCommand;
  abort_compaction: AbortCompactionCommand;
  set_auto_compaction: SetAutoCompactionCommand;
  set_auto_retry: SetAutoRetryCommand;
  abort_retry: AbortRetryCommand;
  bash: BashCommand;
  user_bash: UserBashCommand;
  abort_bash: AbortBashCommand;
  get_tasks: GetTasksCommand;
  get_task: GetTaskCommand;
  cancel_task: CancelTaskCommand;
  send_task_input: SendTaskInputCommand;
  resize_task: ResizeTaskCommand;
  wait_task: WaitTaskCommand;
  set_task_subscription: SetTaskSubscriptionCommand;
  new_session: NewSessionCommand;
  switch_session: SwitchSessionCommand;
  import_session: ImportSessionCommand;
  fork: ForkCommand;
  clone: CloneCommand;
  set_session_name: SetSessionNameCommand;
  navigate_tree: NavigateTreeCommand;
  set_label: SetLabelCommand;
  export_html: ExportHtmlCommand;
  reload: ReloadCommand;
  get_commands: GetCommandsCommand;
  get_command_completions: GetCommandCompletionsCommand;
  get_shortcuts: GetShortcutsCommand;
  invoke_shortcut: InvokeShortcutCommand;
}

/** A response by its `command`. */
export interface Responses {
  prompt: PromptResponse;
  steer: SteerResponse;
  follow_up: FollowUpResponse;
  abort: AbortResponse;
  clear_queue: ClearQueueResponse;
  pause_queued_messages: PauseQueuedMessagesResponse;
  resume_queued_messages: ResumeQueuedMessagesResponse;
  set_steering_mode: SetSteeringModeResponse;
  set_follow_up_mode: SetFollowUpModeResponse;
  get_state: GetStateResponse;
  get_messages: GetMessagesResponse;
  get_session_stats: GetSessionStatsResponse;
  get_last_assistant_text: GetLastAssistantTextResponse;
  get_entries: GetEntriesResponse;
  get_tree: GetTreeResponse;
  get_fork_messages: GetForkMessagesResponse;
  set_model: SetModelResponse;
  cycle_model: CycleModelResponse;
  get_available_models: GetAvailableModelsResponse;
  refresh_models: RefreshModelsResponse;
  login_provider: LoginProviderResponse;
  save_provider_credential: SaveProviderCredentialResponse;
  cancel_login_provider: CancelLoginProviderResponse;
  logout_provider: LogoutProviderResponse;
  set_thinking_level: SetThinkingLevelResponse;
  cycle_thinking_level: CycleThinkingLevelResponse;
  get_available_thinking_levels: GetAvailableThinkingLevelsResponse;
  compact: CompactResponse;
  abort_compaction: AbortCompactionResponse;
  set_auto_compaction: SetAutoCompactionResponse;
  set_auto_retry: SetAutoRetryResponse;
  abort_retry: AbortRetryResponse;
  bash: BashResponse;
  user_bash: UserBashResponse;
  abort_bash: AbortBashResponse;
  get_tasks: GetTasksResponse;
  get_task: GetTaskResponse;
  cancel_task: CancelTaskResponse;
  send_task_input: SendTaskInputResponse;
  resize_task: ResizeTaskResponse;
  wait_task: WaitTaskResponse;
  set_task_subscription: SetTaskSubscriptionResponse;
  new_session: NewSessionResponse;
  switch_session: SwitchSessionResponse;
  import_session: ImportSessionResponse;
  fork: ForkResponse;
  clone: CloneResponse;
  set_session_name: SetSessionNameResponse;
  navigate_tree: NavigateTreeResponse;
  set_label: SetLabelResponse;
  export_html: ExportHtmlResponse;
  reload: ReloadResponse;
  get_commands: GetCommandsResponse;
  get_command_completions: GetCommandCompletionsResponse;
  get_shortcuts: GetShortcutsResponse;
  invoke_shortcut: InvokeShortcutResponse;
}

/** An event by its `type`. */
export interface Events {
  agent_start: AgentStartEvent;
  agent_end: AgentEndEvent;
  agent_settled: AgentSettledEvent;
  turn_start: TurnStartEvent;
  turn_end: TurnEndEvent;
  message_start: MessageStartEvent;
  message_update: MessageUpdateEvent;
  message_end: MessageEndEvent;
  tool_execution_start: ToolExecutionStartEvent;
  tool_execution_update: ToolExecutionUpdateEvent;
  tool_execution_end: ToolExecutionEndEvent;
  queue_update: QueueUpdateEvent;
  bash_execution_update: BashExecutionUpdateEvent;
  task_update: TaskUpdateEvent;
  task_transcript: TaskTranscriptEvent;
  session_info_changed: SessionInfoChangedEvent;
  entry_appended: EntryAppendedEvent;
  model_changed: ModelChangedEvent;
  thinking_level_changed: ThinkingLevelChangedEvent;
  model_fallback_start: ModelFallbackStartEvent;
  model_fallback_end: ModelFallbackEndEvent;
  auto_retry_start: AutoRetryStartEvent;
  auto_retry_end: AutoRetryEndEvent;
  compaction_start: CompactionStartEvent;
  compaction_end: CompactionEndEvent;
  summarization_retry_scheduled: SummarizationRetryScheduledEvent;
  summarization_retry_attempt_start: SummarizationRetryAttemptStartEvent;
  summarization_retry_finished: SummarizationRetryFinishedEvent;
  agent_continue_error: AgentContinueErrorEvent;
  extension_error: ExtensionErrorEvent;
}
