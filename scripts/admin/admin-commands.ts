/** The commands for operators, each with one line of help. */
export const ADMIN_COMMANDS: readonly string[] = [
  "  admin shards                    list the hosts with their leases and shards",
  "  admin tasks                     count the waiting and running tasks of each lane",
  `  admin doctor [<check>…] [--json] [--site <url>]
                                  check this machine, its settings, its bus, and whether it reaches a site`,
  `  admin backup <folder> [--keep <n>]
                                  copy all data into a folder, online; keep its newest n backups`,
  `  admin backup <folder> --verify
                                  compare all files of the folder's backups with their SHA-256`,
  `  admin restore <folder> [--from <moment>]
                                  bring the newest backup, or that of a moment, onto an empty bus`,
  "  admin trace <request id>        print the way of a request of the last three days, at most 60,000 requests ago",
  `  admin bus-credentials <folder>  make a user of the bus for each role: seeds, and the servers' part of them`,
  "  admin streams                   make the streams and queues of this version",
  `  admin secrets [reseal]          count the secrets of apps that each key seals; or seal all with the newest key`,
  "  admin dead list                 list the messages that failed at every try, the oldest first",
  "  admin dead show <number>        print one of them completely",
  "  admin dead retry <number>|--all send it again and remove it from the list",
  "  admin dead drop <number>|--all  remove it from the list",
];
