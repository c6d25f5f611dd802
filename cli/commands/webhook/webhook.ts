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
    .argument('<preset>', 'who sends: github, gitlab, stripe, slack, shopify, linear, …')
    .option('--path <path>', 'URL path (default: /webhook/<preset>)')
    .option('--agent <agent>', 'who answers (default: the only one there is)')
    .option('--filter <path=value>', 'condition on the payload; can be repeated', listed)
    .option('--deliver-to <target>', 'where the answer goes; can be repeated', listed)
    .option('--prompt <text>', "the prompt (default: the preset's)")
    .option('--secret-env <name>', 'variable of the secret (default: made of the path)')
    .option('--secret-stdin', "read the sender's secret; a terminal is asked for it")
    .option('--show-secret', 'print the secret, to paste it at the sender')
    .option('--print', 'print the entry, write nothing')
    .action(run(async () => (await import('./add.ts')).addWebhook))
  webhook
    .command('send')
    .description('sign a payload as the sender would, and send it to the running daemon')
    .argument('[path]', 'path of the webhook, for example /webhook/github')
    .argument('[file]', 'file with the payload, - for standard input')
    .option('--sample [name]', 'a built-in payload; without a name: list them')
    .option('--event <name>', "kind of event, for the sender's header: push, pull_request, …")
    .option('--wait', "wait until the event is finished and print the agent's answer")
    .action(run(async () => (await import('./send.ts')).sendWebhook))

  webhook
    .command('explain')
    .description('what would become of a delivery and why: nothing is run, sent or noted')
    .argument('<path>', 'path of the webhook, for example /webhook/github')
    .argument('[file]', 'file with the payload, - for standard input')
    .option('--sample <name>', 'a built-in payload (webhook send --sample lists them)')
    .option(
      '--header <line>',
      "a header of the delivery, as 'Name: value'; can be repeated",
      listed,
    )
    .action(run(async () => (await import('./explain.ts')).explainWebhook))
  webhook
    .command('learn')
    .description(
      'wait for the next verified delivery; print its paths and types, without values, and a filter and prompt to begin with',
    )
    .argument('<path>', 'path of the webhook')
    .option('--from <file>', 'learn from a payload in a file (- for standard input) instead')
    .action(run(async () => (await import('./learn.ts')).learnWebhook))
}
