import { existsSync } from 'node:fs'
import { access } from 'node:fs/promises'
import { addWebhookSecret, initHome, sampleSecretName } from '../../shared/home/init-home.ts'
import type { Context } from '../context.ts'
import { findRunningDaemon } from '../daemon-client/connect.ts'
import { asInvoked } from '../terminal/terminal.ts'

/** Creates what is missing in the home; a second run changes nothing. */
export const init = async ({ home, terminal }: Context): Promise<void> => {
  const hadSecrets = existsSync(home.env)
  const { created } = await initHome(home)
  if (await addWebhookSecret(home)) created.push(home.env)
  if (terminal.json) {
    terminal.printJson({ home: home.root, created })
    return
  }
  if (created.length === 0) terminal.print(`${home.root} is complete: nothing was changed`)
  for (const path of created)
    terminal.print(
      path === home.env && hadSecrets ? `added ${sampleSecretName} to ${path}` : `created ${path}`,
    )
  if (created.includes(home.env))
    terminal.say(`${home.env} has ${sampleSecretName}: give the same value to the sender`)
  terminal.say(
    [
      'next:',
      '  doorward webhook send /webhook/github --sample github:pull_request.opened --wait',
      '  doorward webhook add github-review --agent claude',
    ].join('\n'),
  )
}

const firstSteps = `
  doorward webhook add github-review --agent claude
                           writes all that a review of pull requests needs
`

const nextSteps = `
  doorward daemon start    start it
  doorward doctor          what is wrong, and what mends it
`

/**
 * `doorward` without a command: the status when the daemon runs, else a short help. Throws
 * `daemon-foreign`.
 */
export const welcome = async (context: Context): Promise<void> => {
  const { home, terminal } = context
  const running = await findRunningDaemon(context)
  if (running) {
    running.close()
    const { showStatus } = await import('./status.ts')
    return showStatus(context)
  }
  if (terminal.json) {
    terminal.printJson({ running: false })
    return
  }
  const isNew = await access(home.config).then(
    () => false,
    () => true,
  )
  terminal.print(
    asInvoked(`Usage: doorward <command>

The daemon is not running${isNew ? ', and there is no home yet' : ''}.
${isNew ? firstSteps : nextSteps}
Then:
  doorward webhook list    where senders send to
  doorward oauth login     log in to google, github, slack and others
  doorward events          what came in and what became of it
  doorward                 everything on one screen

All commands: doorward --help`),
  )
}
