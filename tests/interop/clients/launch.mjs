// The npm clients start `node FILE --mode rpc ...`. This file makes that our command: same pipes, same signals.
import { spawn } from "node:child_process";

const [program, ...words] = JSON.parse(process.env.AGENT_COMMAND);
const agent = spawn(program, [...words, ...process.argv.slice(2)], { stdio: "inherit" });
for (const signal of ["SIGTERM", "SIGINT", "SIGHUP"]) process.on(signal, () => agent.kill(signal));
agent.on("exit", (code, signal) => process.exit(code ?? (signal ? 1 : 0)));
