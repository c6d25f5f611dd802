#!/usr/bin/env node
import module from 'node:module'
import { fileURLToPath } from 'node:url'
import { packageFolder } from '../shared/version.ts'

/** Where Node keeps compiled code: a user who can write there could change the program as well. */
const compiledFolder = fileURLToPath(new URL('dist/.compiled', packageFolder))

/** Since Node 22.8. Without a folder of our own it is in the shared one for temporary files. */
type CompileCache = { readonly enableCompileCache?: (folder: string) => unknown }
;(module as CompileCache).enableCompileCache?.(compiledFolder)
// Loaded now, so that it comes out of that cache.
void import('./program.ts').then(async ({ runProgram }) => runProgram(process.argv.slice(2)))
