#!/bin/bash
cd /repo
sed -i 's/        if current.weekday() == SATURDAY:/        while current.weekday() >= SATURDAY:/' shipping/dates.py
