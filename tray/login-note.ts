import type { Login } from '../shared/api.ts'
import { type Note, bodyOf, loginKey, titleOf } from './note.ts'
import { providerTitle, upperFirst } from './wording.ts'

/** How a login ended: who is logged in, or why nobody is. */
export const loginNoteOf = (login: Login): Note => {
  const name = providerTitle(login.provider)
  const key = loginKey(login.provider)
  if (login.status !== 'authorized') {
    const { message, hint } = login.error ?? { message: reasons[login.status] ?? login.status }
    return {
      title: titleOf(`not logged in to ${name}`),
      body: bodyOf([upperFirst(message), hint ?? ''].join('\n')),
      failure: true,
      key,
    }
  }
  const { account, replaced, missingScopes = [] } = login
  const lines = [
    account ? `As ${account.name}` : `${name} does not say as whom`,
    ...(replaced ? [`In place of ${replaced.name}`] : []),
    ...(missingScopes.length > 0 ? [`Not granted: ${missingScopes.join(', ')}`] : []),
  ]
  return { title: titleOf(`logged in to ${name}`), body: bodyOf(lines.join('\n')), key }
}

const reasons: Partial<Record<Login['status'], string>> = {
  cancelled: 'the login was cancelled',
  expired: 'nobody finished the login in time',
}

/** Where to enter which code; the page is open, or any other browser will do. */
export const userCodeNote = (provider: string, userCode: string, page: string): Note => ({
  title: titleOf(`enter ${userCode} to log in to ${providerTitle(provider)}`),
  body: bodyOf(`The page is ${page}, in any browser`),
  key: loginKey(provider),
})

export const noBrowserNote = (provider: string): Note => ({
  title: titleOf('no browser could be opened'),
  body: bodyOf(`Log in from a terminal:\ndoorward oauth login ${provider}`),
  failure: true,
  key: loginKey(provider),
})
