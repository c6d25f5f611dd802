import { existsSync } from 'node:fs'
import { addWebhookSecret, makeHome, sampleSecretName } from '../shared/config/init-home.ts'
import type { Context } from './context.ts'

/** Writes what is missing in the home, and nothing else; a second run changes nothing. */
export const init = async ({ home, terminal }: Context): Promise<void> => {
  const hadSecrets = existsSync(home.env)
  const { created } = await makeHome(home)
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
    terminal.say(`${home.env} holds ${sampleSecretName}: give the same value to the sender`)
  terminal.say(
    [
      'next:',
      '  doorward daemon start',
      '  doorward webhook send /webhook/github --sample github:pull_request.opened --wait',
      '  doorward config edit webhooks',
    ].join('\n'),
  )
}
