import type { Command } from 'commander'
import { listed, run } from '../../run-action.ts'

/** The commands of `doorward agent`. */
export const addAgentCommands = (
  agent: Command,
  afterDashes: readonly string[] | undefined,
): void => {
  agent
    .command('add')
    .description('add an agent to agents.yaml')
    .argument('<kind>', 'claude, codex, gemini, opencode, llm, openai, http, command or echo')
    .argument('[name...]', 'its name (default: the kind); after --: its flags, or its command')
    .option('--model <name>', 'the model it uses')
    .option('--base-url <url>', 'openai: the URL before /chat/completions')
    .option('--api-key-env <name>', 'openai: variable of the API key')
    .option('--url <url>', 'http: the URL that gets the prompt')
    .option('--answer-path <path>', 'http: where in the JSON the answer is')
    .option('--cwd <dir>', 'working folder (default: an empty one)')
    .option('--env <NAME=value>', 'added variable; repeatable', listed)
    .option('--timeout <duration>', 'default: 10m')
    .option('--print', 'print the entry, write nothing')
    .usage('[options] <kind> [name] [-- args...]')
    .addHelpText('after', agentHelp)
    .action(
      run(async () => {
        const { addAgent } = await import('./add.ts')
        return async (context, words, options) =>
          addAgent(context, words.slice(0, words.length - (afterDashes?.length ?? 0)), {
            ...options,
            afterDashes,
          })
      }),
    )
}

const agentHelp = `
Examples:
  doorward agent add claude reviewer --model sonnet -- --tools Read,Grep
  doorward agent add openai local --base-url http://127.0.0.1:11434/v1 \\
    --model llama3.2
  doorward agent add command words -- wc -w`
