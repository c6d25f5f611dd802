import type { Command } from 'commander'
import { listed, run } from '../../run-action.ts'

/** The commands of `doorward webhook`. */
export const addWebhookCommands = (webhook: Command): void => {
  webhook
    .command('list')
    .description('definitions, URLs, secrets set or not, last event')
    .action(run(async () => (await import('./list.ts')).listWebhooks))
  webhook
    .command('add')
    .description('add a webhook to webhooks.yaml, with a secret in .env')
    .argument(
      '<preset>',
      'the sender (github, gitlab, stripe, …), or github-review, github-mention, github-fix, ci-failure, sentry-fix, slack-agent, telegram-agent: a whole rule',
    )
    .option('--path <path>', 'URL path (default: /webhook/<preset>)')
    .option(
      '--agent <agent>',
      'the agent that answers (default: the only one); claude, codex, … is made',
    )
    .option('--on <event>', 'event that runs the agent; repeatable', listed)
    .option('--filter <path=value>', 'condition on the payload; repeatable', listed)
    .option('--deliver-to <target>', 'where the answer goes; repeatable', listed)
    .option('--prompt <text>', "the prompt (default: the preset's)")
    .option('--secret-env <name>', 'variable of the secret (default: derived from the path)')
    .option('--secret-stdin', "read the sender's secret from standard input; prompts on a terminal")
    .option('--show-secret', 'print the secret, to paste it at the sender')
    .option('--audience <text>', 'google-pubsub: the audience of its token; aws-sns: the topic')
    .option('--service-account <email>', 'google-pubsub: the service account of its token')
    .option('--from <id>', 'telegram-agent: the number of who may start it; repeatable', listed)
    .option('--token-in <place>', 'token: bearer, basic, header:NAME, query:NAME or field:PATH')
    .option(
      '--field <name=value>',
      'a field of the entry, as issuer=… or claims.sub=…; repeatable',
      listed,
    )
    .option('--bot <name>', 'whole rules for GitHub: the bot that answers (default: the only one)')
    .option('--no-bot', 'whole rules for GitHub: your own login answers')
    .option(
      '--repo <owner/name>',
      'whole rules: only events of this repository; sentry-fix: that of the code',
    )
    .option('--yes', 'asana: keep the secret it sends; aws-sns: confirm the subscription')
    .option('--print', 'print the entry, write nothing')
    .action(run(async () => (await import('./add.ts')).addWebhook))
  webhook
    .command('connect')
    .description('make the hook at the sender by its API, with the webhook, the secret and a ping')
    .argument('<sender>', 'github, gitlab or stripe')
    .argument('[repository]', 'owner/repository or project, or an organisation or group')
    .option('--path <path>', 'URL path (default: /webhook/<sender>/<repository>)')
    .option('--agent <agent>', 'the agent that answers (default: the first, or echo)')
    .option('--on <event>', 'event that runs the agent; repeatable', listed)
    .option('--deliver-to <target>', 'where the answer goes; repeatable', listed)
    .option('--prompt <text>', 'the prompt (default: that of webhook add)')
    .option('--poll', 'read the deliveries from GitHub or Stripe: needs no public address')
    .option('--as-bot', 'github: make a bot, with one hook for all its repositories')
    .option('--key-env <name>', 'stripe: variable with its key (default: STRIPE_API_KEY)')
    .action(run(async () => (await import('./connect.ts')).connectWebhook))
  webhook
    .command('disconnect')
    .description('delete a hook that connect made; the webhook and its secret stay')
    .argument('<webhook>', 'path of the webhook, or the repository')
    .action(run(async () => (await import('./hooks.ts')).disconnectWebhook))
  webhook
    .command('hooks')
    .description('list the hooks that connect made, as their senders have them now')
    .action(run(async () => (await import('./hooks.ts')).listHooks))
  addTryCommands(webhook)
}

/** The commands that show and send deliveries; they write nothing. */
const addTryCommands = (webhook: Command): void => {
  webhook
    .command('send')
    .description('sign a payload as the sender would and send it to the running daemon')
    .argument('[path]', 'path of the webhook, for example /webhook/github')
    .argument('[file]', 'file with the payload, - for standard input')
    .option('--sample [name]', 'a built-in payload; without a name: list them')
    .option('--event <name>', "event name for the sender's header: push, pull_request, …")
    .option('--wait', "wait until the event is finished and print the agent's answer")
    .action(run(async () => (await import('./send.ts')).sendWebhook))

  webhook
    .command('explain')
    .description('show what would happen to a delivery and why; nothing is run, sent or recorded')
    .argument('<path>', 'path of the webhook, for example /webhook/github')
    .argument('[file]', 'file with the payload, - for standard input')
    .option('--sample <name>', 'a built-in payload (webhook send --sample lists them)')
    .option('--header <line>', "a header of the delivery, as 'Name: value'; repeatable", listed)
    .action(run(async () => (await import('./explain.ts')).explainWebhook))
  webhook
    .command('learn')
    .description(
      'wait for the next verified delivery; print a filter and a prompt to start from, and its paths and types (no values)',
    )
    .argument('<path>', 'path of the webhook')
    .option('--all', 'print every path, not only the first ten')
    .option('--from <file>', 'learn from a payload in a file (- for standard input) instead')
    .action(run(async () => (await import('./learn.ts')).learnWebhook))
}
